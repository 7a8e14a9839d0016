#!/usr/bin/env bash
# Installs a Debian package of gattherd in a tree of plain Debian 12, tries it, boots the tree and runs it as a service.
# Upgrades, downgrades, removes, reinstalls and purges it while the service runs, and again without systemd.
#
# Builds native profiles in C, and in Swift if there is a toolchain, with the package gattherd-dev.
#
#   package.sh GATTHERD.deb GATTHERD-DEV.deb      as root
set -euo pipefail
package=$(realpath "$1")
dev_package=$(realpath "$2")
tree=$(mktemp -d)
nspawn=
trap '[ -z "$nspawn" ] || kill -KILL "$nspawn"; umount -q "$tree/proc" || true; rm -rf "$tree"' EXIT

inside() { chroot "$tree" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
step() { printf '%s\n' "package: $*"; }
fail() { echo "package: $*" >&2; exit 1; }
# In the booted tree.
booted() { nsenter --target "$(pgrep --parent "$nspawn")" --all env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
main_pid() { booted systemctl show --property MainPID --value gattherd; }
is_running() { booted systemctl is-active --quiet gattherd; }
# A process of the package's program, whoever started it, also one whose file is gone.
has_process() { booted sh -c 'for each in /proc/[0-9]*/exe; do readlink "$each" || true; done' 2>/dev/null | grep -Eq '^/usr/bin/gattherd( |$)'; }
# Does something to the package while the service runs, which must then be another process.
restarts() {
    local before
    before=$(main_pid)
    booted "$@" >/dev/null 2>&1 || fail "$* fails"
    eventually is_running || fail "$* leaves the service down"
    [ "$(main_pid)" != "$before" ] || fail "$* leaves the old program running"
}
# The package with another version, in the tree.
repack() {
    rm -rf "$tree/srv/repack"
    dpkg-deb --raw-extract "$package" "$tree/srv/repack"
    sed -i "s/^Version: .*/Version: $1/" "$tree/srv/repack/DEBIAN/control"
    dpkg-deb --build "$tree/srv/repack" "$tree/srv/$1.deb" >/dev/null
    rm -rf "$tree/srv/repack"
}
# Findings of `gattherd doctor` that are errors, of these checks only.
doctor_errors() {
    booted gattherd doctor --json >"$tree/srv/doctor.json" || true
    python3 - "$tree/srv/doctor.json" "$@" <<'PYTHON'
import json, sys
for each in json.load(open(sys.argv[1])):
    if each["severity"] == "error" and each["check"] in sys.argv[2:]:
        print(each["check"], each["finding"])
PYTHON
}
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
inside gattherd check /etc/gattherd/gattherd.yaml >"$tree/tmp/check.log"
grep -q ' 0 devices' "$tree/tmp/check.log" || fail "the packaged configuration names devices"
grep -q "gattherd scan" "$tree/tmp/check.log" || fail "an empty configuration does not say what to do"
for file in bash-completion/completions/gattherd zsh/vendor-completions/_gattherd fish/vendor_completions.d/gattherd.fish; do
    grep -q 'completions words' "$tree/usr/share/$file" || fail "there is no /usr/share/$file"
done
for file in usr/share/gattherd/gattherd.schema.json lib/systemd/system/gattherd-backup.timer; do
    [ -e "$tree/$file" ] || fail "there is no /$file"
done
inside gattherd profile list | grep -q heart-rate || fail "the profiles are not found"
inside runuser -u gattherd -- gattherd profile decode heart-rate 2a37 16480004 | grep -q 72 ||
    fail "a native profile does not decode"

step "build native profiles with gattherd-dev"
cp "$dev_package" "$tree/tmp/gattherd-dev.deb"
inside apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends /tmp/gattherd-dev.deb gcc libc6-dev pkg-config \
    >"$tree/tmp/dev.log" 2>&1 || { tail -20 "$tree/tmp/dev.log" >&2; fail "gattherd-dev does not install"; }
for name in soil-probe garden-beacon; do
    inside sh -c "cc -std=c11 -Wall -Wextra -Werror -fPIC -shared \$(pkg-config --cflags gattherd-profile) \
        -o /srv/$name.so /usr/share/doc/gattherd-dev/examples/$name.c" || fail "$name.c does not compile"
    [ "$(inside gattherd profile test "/srv/$name.so")" = "2 passed, 0 failed" ] || fail "the tests of $name fail"
done
inside sh -c "cd /srv && gattherd profile new probe --swift" >/dev/null || fail "profile new does not find ProfileKit"
grep -q '"/usr/src/gattherd"' "$tree/srv/probe/Package.swift" || fail "a new profile does not use the ProfileKit of the package"
if command -v swift >/dev/null; then
    sed -i "s|/usr/src/gattherd|$tree/usr/src/gattherd|" "$tree/srv/probe/Package.swift"
    swift build --package-path "$tree/srv/probe" >"$tree/tmp/swift.log" 2>&1 ||
        { tail -20 "$tree/tmp/swift.log" >&2; fail "a Swift profile does not build"; }
    [ "$(inside gattherd profile test /srv/probe/.build/debug/libProbe.so)" = "2 passed, 0 failed" ] || fail "the tests of a Swift profile fail"
fi
inside apt-get purge -y -qq -o Dpkg::Use-Pty=0 gattherd-dev >/dev/null 2>&1
[ ! -e "$tree/usr/src/gattherd" ] && [ ! -e "$tree/usr/include/gattherd_profile.h" ] || fail "purging leaves gattherd-dev"
rm -rf "$tree"/srv/*

step "run, without hardware"
inside timeout --signal=INT 15 gattherd simulate >"$tree/tmp/run.log" 2>&1 || true
grep -q mosquitto_sub "$tree/tmp/run.log" || { cat "$tree/tmp/run.log" >&2; fail "gattherd simulate does not run"; }

step "run as a service, with the rights that its unit leaves it, on the system's bus"
umount "$tree/proc"
echo "127.0.0.1 localhost" > "$tree/etc/hosts"
cat > "$tree/etc/dbus-1/system.d/simulator.conf" <<'XML'
<busconfig><policy user="root"><allow own="org.gattherd.Simulator"/></policy></busconfig>
XML
cp "$package" "$tree/srv/gattherd.deb"
repack 9.9.9
repack 0.0.1
systemd-nspawn --quiet --directory "$tree" --boot --register=no --keep-unit --private-network \
    </dev/null >"$tree/tmp/boot.log" 2>&1 &
nspawn=$!
eventually booted systemctl is-active multi-user.target || { tail -20 "$tree/tmp/boot.log" >&2; fail "the tree does not boot"; }
errors=$(doctor_errors config history filesystem profiles daemon)
[ -z "$errors" ] || fail "before the first start doctor says: $errors"
cat > "$tree/etc/gattherd/gattherd.yaml" <<'YAML'
devices:
  - {name: strap, address: "C0:FF:EE:00:00:01"}
  - {name: dial, address: "C0:FF:EE:00:00:10"}
mqtt: {url: mqtt://localhost:1883}
http: {listen: "127.0.0.1:8780", token_file: /etc/gattherd/token}
YAML
(umask 077; echo 0123456789abcdef0123456789abcdef > "$tree/etc/gattherd/token")
booted gattherd check >"$tree/srv/check.log" 2>&1 && fail "check passes a token that the service cannot read"
grep -q "chgrp gattherd '/etc/gattherd/token'" "$tree/srv/check.log" || { cat "$tree/srv/check.log" >&2; fail "check does not say how to mend it"; }
doctor_errors config | grep -q /etc/gattherd/token || fail "doctor passes a token that the service cannot read"
booted sh -c "chgrp gattherd /etc/gattherd/token && chmod g+r /etc/gattherd/token && gattherd check" >/dev/null || fail "the remedy does not help"
booted systemd-run --quiet --unit simulator gattherd-sim run --bus system /usr/share/gattherd/scenarios/lab.yaml
booted systemctl start gattherd || { booted journalctl --no-pager --unit gattherd >&2; fail "the service does not start"; }
both_ready() { [ "$(booted gattherd status | grep -c ' ready ')" = 2 ]; }
eventually both_ready || { booted gattherd status >&2; fail "the service connects nobody"; }
booted systemctl reload gattherd || fail "the service does not reload"
booted gattherd reload | grep -q "is reloaded" || fail "gattherd reload does not say what came of it"
booted systemctl stop gattherd
result=$(booted systemctl show --property Result,NRestarts gattherd | sort | tr '\n' ' ')
[ "$result" = "NRestarts=0 Result=success " ] || { booted journalctl --no-pager --unit gattherd >&2; fail "$result"; }

step "daily backups, and the move to a gateway that never ran"
booted sh -c "chown gattherd:gattherd /etc/gattherd/token && chmod 600 /etc/gattherd/token"
booted systemctl start gattherd-backup || { booted journalctl --no-pager --unit gattherd-backup >&2; fail "the backup of the stopped service fails"; }
booted systemctl start gattherd
eventually both_ready || fail "the service does not start again"
booted systemctl start gattherd-backup || { booted journalctl --no-pager --unit gattherd-backup >&2; fail "the backup fails"; }
archive=$(cd "$tree" && find var/lib/gattherd-backups -name 'gattherd-*-000002-*.tar')
[ -n "$archive" ] || fail "there are not two daily backups"
tar --list --file "$tree/$archive" | grep -q history.db || fail "the daily backup has no history"
booted gattherd restore "/$archive" >/dev/null 2>&1 && fail "a backup is restored below the running service"
booted systemctl stop gattherd
booted sh -c "mv /var/lib/gattherd /srv/old-state && mkdir /srv/old && mv /etc/gattherd/* /srv/old"
booted gattherd restore "/$archive" >"$tree/srv/restore.log" 2>&1 || { cat "$tree/srv/restore.log" >&2; fail "the backup cannot be restored"; }
booted gattherd check >/dev/null || fail "the service cannot read what was restored"
booted systemctl start gattherd
eventually both_ready || { booted gattherd status >&2; fail "the restored service connects nobody"; }
booted useradd --groups gattherd alice
booted runuser -u alice -- gattherd status >/dev/null || fail "a member of the group may not ask for the status"
booted runuser -u alice -- gattherd disconnect strap >/dev/null 2>&1 && fail "a member of the group may change something"
booted systemctl stop gattherd
rm -rf "$tree/srv/old-state" "$tree/srv/old"

step "upgrade and downgrade, with the service running and stopped"
booted systemctl enable --quiet --now gattherd
restarts dpkg --install --force-confold /srv/9.9.9.deb
restarts dpkg --install --force-confold /srv/0.0.1.deb
restarts dpkg --install --force-confold /srv/0.0.1.deb
printf '#!/bin/sh\nexit 101\n' > "$tree/usr/sbin/policy-rc.d"
chmod 755 "$tree/usr/sbin/policy-rc.d"
before=$(main_pid)
booted dpkg --install --force-confold /srv/gattherd.deb >/dev/null 2>&1
[ "$(main_pid)" = "$before" ] || fail "an upgrade restarts the service against the host's policy"
rm "$tree/usr/sbin/policy-rc.d"
booted systemctl stop gattherd
booted dpkg --install --force-confold /srv/9.9.9.deb >/dev/null 2>&1
! is_running || fail "an upgrade starts a service that was stopped"
booted systemctl start gattherd

step "remove, reinstall and purge, with the service running"
booted apt-get remove -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null 2>&1
! has_process || fail "removing leaves the daemon running"
[ -e "$tree/var/lib/gattherd/gattherd.db" ] || fail "removing took the history"
booted dpkg --install --force-confold /srv/gattherd.deb >/dev/null 2>&1
eventually is_running || fail "after a removal and an installation the service does not run again"
booted apt-get purge -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null 2>&1
! has_process || fail "purging leaves the daemon running"
! booted id gattherd >/dev/null 2>&1 || fail "purging leaves the user"
[ ! -e "$tree/var/lib/gattherd" ] || fail "purging leaves the history"
[ "$(stat --format %U "$tree/$archive")" = root ] || fail "purging takes the backups, or leaves them to nobody"
rm -rf "$tree/var/lib/gattherd-backups"
[ ! -e "$tree/etc/systemd/system/multi-user.target.wants/gattherd.service" ] || fail "purging leaves the service enabled"
booted dpkg --install /srv/gattherd.deb >/dev/null 2>&1
! is_running || fail "an installation starts a service that nobody configured"
booted systemctl poweroff
wait "$nspawn"
nspawn=
mount -t proc proc "$tree/proc"

step "upgrade without systemd: what was changed in /etc stays"
echo "# mine" >> "$tree/etc/gattherd/gattherd.yaml"
mkdir -p "$tree/var/lib/gattherd" && touch "$tree/var/lib/gattherd/gattherd.db"
inside dpkg --install --force-confdef /srv/gattherd.deb >/dev/null
grep -q "# mine" "$tree/etc/gattherd/gattherd.yaml" || fail "the upgrade lost a changed configuration"

step "remove, then purge, without systemd"
rm "$tree/etc/gattherd/token"
inside apt-get remove -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null
[ -e "$tree/var/lib/gattherd/gattherd.db" ] || fail "removing took the history"
inside apt-get purge -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null 2>&1
left=$(cd "$tree" && find etc usr var/lib lib/systemd -name '*gattherd*' -not -path '*/dpkg/*' -not -path '*/apt/*')
[ -z "$left" ] || fail "purging leaves: $left"
step "good"
