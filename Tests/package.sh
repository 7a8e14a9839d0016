#!/usr/bin/env bash
# Installs a Debian package of gattherd in a tree of plain Debian 12, tries it, upgrades it, purges it.
#
#   package.sh FILE.deb      as root
set -euo pipefail
package=$(realpath "$1")
tree=$(mktemp -d)
trap 'umount -q "$tree/proc" || true; rm -rf "$tree"' EXIT

inside() { chroot "$tree" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
step() { printf '%s\n' "package: $*"; }
fail() { echo "package: $*" >&2; exit 1; }

step "a new Debian tree"
mmdebstrap --quiet --variant=minbase --mode=root --skip=check/empty bookworm "$tree"
mount -t proc proc "$tree/proc"
cp "$package" "$tree/tmp/gattherd.deb"

step "install"
inside apt-get update -qq
inside apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends /tmp/gattherd.deb mosquitto >"$tree/tmp/install.log" 2>&1 ||
    { tail -20 "$tree/tmp/install.log" >&2; fail "the package does not install"; }
inside id gattherd >/dev/null
inside gattherd --version
inside gattherd check /etc/gattherd/gattherd.yaml
for file in bash-completion/completions/gattherd zsh/vendor-completions/_gattherd fish/vendor_completions.d/gattherd.fish; do
    grep -q 'completions words' "$tree/usr/share/$file" || fail "there is no /usr/share/$file"
done
inside gattherd profile list | grep -q heart-rate || fail "the profiles are not found"
inside runuser -u gattherd -- gattherd profile decode heart-rate 2a37 16480004 | grep -q 72 ||
    fail "a native profile does not decode"

step "run, without hardware"
inside timeout --signal=INT 15 gattherd simulate >"$tree/tmp/run.log" 2>&1 || true
grep -q mosquitto_sub "$tree/tmp/run.log" || { cat "$tree/tmp/run.log" >&2; fail "gattherd simulate does not run"; }

step "upgrade: what was changed in /etc stays"
echo "# mine" >> "$tree/etc/gattherd/gattherd.yaml"
mkdir -p "$tree/var/lib/gattherd" && touch "$tree/var/lib/gattherd/gattherd.db"
inside dpkg --install --force-confdef /tmp/gattherd.deb >/dev/null
grep -q "# mine" "$tree/etc/gattherd/gattherd.yaml" || fail "the upgrade lost a changed configuration"

step "remove, then purge"
inside apt-get remove -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null
[ -e "$tree/var/lib/gattherd/gattherd.db" ] || fail "removing took the history"
inside apt-get purge -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null 2>&1
left=$(cd "$tree" && find etc usr var/lib lib/systemd -name '*gattherd*' -not -path '*/dpkg/*' -not -path '*/apt/*')
[ -z "$left" ] || fail "purging leaves: $left"
step "good"
