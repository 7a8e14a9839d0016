#!/usr/bin/env bash
# Installs a Debian package of gattherd in a tree of plain Debian 12, tries it, boots the tree and runs it as a service,
# upgrades it, purges it.
#
#   package.sh FILE.deb      as root
set -euo pipefail
package=$(realpath "$1")
tree=$(mktemp -d)
nspawn=
trap '[ -z "$nspawn" ] || kill -KILL "$nspawn"; umount -q "$tree/proc" || true; rm -rf "$tree"' EXIT

inside() { chroot "$tree" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
step() { printf '%s\n' "package: $*"; }
fail() { echo "package: $*" >&2; exit 1; }
# In the booted tree.
booted() { nsenter --target "$(pgrep --parent "$nspawn")" --all env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
# Tries a command for a minute.
eventually() {
    for _ in $(seq 60); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 1
    done
    return 1
}

step "a new Debian tree"
mmdebstrap --quiet --variant=minbase --mode=root --skip=check/empty --include=systemd-sysv bookworm "$tree"
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

step "run as a service, with the rights that its unit leaves it, on the system's bus"
umount "$tree/proc"
echo "127.0.0.1 localhost" > "$tree/etc/hosts"
cat > "$tree/etc/dbus-1/system.d/simulator.conf" <<'XML'
<busconfig><policy user="root"><allow own="org.gattherd.Simulator"/></policy></busconfig>
XML
cat > "$tree/etc/gattherd/gattherd.yaml" <<'YAML'
devices:
  - {name: strap, address: "C0:FF:EE:00:00:01"}
  - {name: dial, address: "C0:FF:EE:00:00:10"}
mqtt: {url: mqtt://localhost:1883}
YAML
systemd-nspawn --quiet --directory "$tree" --boot --register=no --keep-unit --private-network \
    </dev/null >"$tree/tmp/boot.log" 2>&1 &
nspawn=$!
eventually booted systemctl is-active multi-user.target || { tail -20 "$tree/tmp/boot.log" >&2; fail "the tree does not boot"; }
booted systemd-run --quiet --unit simulator gattherd-sim run --bus system /usr/share/gattherd/scenarios/lab.yaml
booted systemctl start gattherd || { booted journalctl --no-pager --unit gattherd >&2; fail "the service does not start"; }
both_ready() { [ "$(booted gattherd status | grep -c ' ready ')" = 2 ]; }
eventually both_ready || { booted gattherd status >&2; fail "the service connects nobody"; }
booted systemctl reload gattherd || fail "the service does not reload"
booted systemctl stop gattherd
result=$(booted systemctl show --property Result,NRestarts gattherd | sort | tr '\n' ' ')
[ "$result" = "NRestarts=0 Result=success " ] || { booted journalctl --no-pager --unit gattherd >&2; fail "$result"; }
booted systemctl poweroff
wait "$nspawn"
nspawn=
mount -t proc proc "$tree/proc"

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
