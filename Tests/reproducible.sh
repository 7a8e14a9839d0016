#!/usr/bin/env bash
# Builds the packages of this commit again, in another folder, and compares them byte for byte with those of `make deb`.
# Names the files that differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
other=$(mktemp -d /var/tmp/gattherd-built-elsewhere-XXXXXX)
trap 'rm -rf "$other"' EXIT
[ -z "$(git status --porcelain)" ] || { echo "reproducible: commit your changes first" >&2; exit 64; }

git clone --quiet . "$other/sources"
make --no-print-directory -C "$other/sources" deb >"$other/log" 2>&1 || { tail -20 "$other/log" >&2; exit 70; }
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
