#!/usr/bin/env bash
# Builds the packages of this commit again, from a new clone in the place of this folder, with another time zone and
# another umask, and compares them byte for byte with those of `make deb`. Names the files that differ. Runs as root.
#
# The folder must be the same: the linker writes it into the native profiles.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$here"
other=$(mktemp -d /var/tmp/gattherd-built-again-XXXXXX)
trap 'rm -rf "$other"' EXIT
[ -z "$(git status --porcelain)" ] || { echo "reproducible: commit your changes first" >&2; exit 64; }

git clone --quiet . "$other/sources"
unshare --mount bash -c 'mount --make-rprivate / && mount --bind "$1" "$2" && cd "$2" && umask 002 &&
    exec env TZ=Asia/Kathmandu make --no-print-directory deb' build "$other/sources" "$here" >"$other/log" 2>&1 ||
    { tail -20 "$other/log" >&2; exit 70; }
status=0
for package in .build/deb/*.deb .build/deb/*.spdx.json; do
    again=$other/sources/$package
    cmp -s "$package" "$again" && { echo "reproducible: $package is the same"; continue; }
    status=1
    echo "reproducible: $package differs" >&2
    [[ $package == *.deb ]] || continue
    for side in one two; do rm -rf "${other:?}/$side"; done
    dpkg-deb --raw-extract "$package" "$other/one"
    dpkg-deb --raw-extract "$again" "$other/two"
    diff -rq "$other/one" "$other/two" >&2 || true
done
exit "$status"
