#!/usr/bin/env bash
# Installs a Debian package of gattherd in a tree of plain Debian 12, tries it, boots the tree and runs it as a service.
# Upgrades, downgrades, removes, reinstalls and purges it while the service runs, and again without systemd.
#
# Builds native profiles in C, and in Swift if there is a toolchain, with the package gattherd-dev. Changes the
# configuration as the dashboard does, and installs from a signed repository.
#
#   package.sh GATTHERD.deb GATTHERD-DEV.deb      as root
set -euo pipefail
package=$(realpath "$1")
dev_package=$(realpath "$2")
build=$(cd "$(dirname "${BASH_SOURCE[0]}")/../config/debian" && pwd)
tree=$(mktemp -d)
keys=$(mktemp -d)
nspawn=
trap '[ -z "$nspawn" ] || kill -KILL "$nspawn"; umount -q "$tree/proc" "$tree/var/lib/gattherd" || true; rm -rf "$tree" "$keys"' EXIT

inside() { chroot "$tree" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
# Reads all of its input, unlike `grep -q`, so that the program before it in a pipe does not fail.
contains() { grep "$@" >/dev/null; }
step() { printf '%s\n' "package: $*"; }
fail() { echo "package: $*" >&2; exit 1; }
# In the booted tree.
booted() { nsenter --target "$(pgrep --parent "$nspawn")" --all env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
main_pid() { booted systemctl show --property MainPID --value gattherd; }
is_running() { booted systemctl is-active --quiet gattherd; }
# True if a process runs the package's program, also one whose file was deleted.
has_process() { booted sh -c 'for each in /proc/[0-9]*/exe; do readlink "$each" || true; done' 2>/dev/null | contains -E '^/usr/bin/gattherd( |$)'; }
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
# The response to a request to the dashboard's API: method, path, body, and whether the token is sent.
api() {
    local token="Authorization: Bearer 0123456789abcdef0123456789abcdef"
    [ "${4:-}" != without-token ] || token="X-Token: none"
    booted bash -c 'exec 3<>/dev/tcp/127.0.0.1/8780
        printf "%s /api/v1/%s HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s" \
            "$1" "$2" "$4" "${#3}" "$3" >&3
        cat <&3' api "$1" "$2" "$3" "$token"
}
# Expects a status of the response to such a request.
answers() {
    local response
    response=$(api "${@:2}") || fail "$2 $3: no response"
    [[ $response == "HTTP/1.1 $1 "* ]] || fail "$2 $3 is answered by: ${response:0:300}"
}
owner_of() { stat --format '%U %G %a' "$tree/$1"; }
# Names of owners are those of the tree, not of the host.
access_of() { booted stat --format '%U %G %a' "/$1"; }
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
grep -q "gattherd add ADDRESS" "$tree/tmp/install.log" || fail "the installation does not say how to add a device"
inside id gattherd >/dev/null
inside gattherd --version
inside gattherd check /etc/gattherd/gattherd.yaml >"$tree/tmp/check.log"
grep -q ' 0 devices' "$tree/tmp/check.log" || fail "the packaged configuration names devices"
grep -q "gattherd scan" "$tree/tmp/check.log" || fail "an empty configuration does not say what to do"
for file in bash-completion/completions/gattherd zsh/vendor-completions/_gattherd fish/vendor_completions.d/gattherd.fish; do
    grep -q 'completions words' "$tree/usr/share/$file" || fail "there is no /usr/share/$file"
done
inside gattherd migrate --check /etc/gattherd/gattherd.yaml >/dev/null || fail "the packaged configuration has keys with old names"
[ "$(inside stat --format '%U %G %a' /etc/gattherd/gattherd.d)" = "root gattherd 770" ] || fail "the daemon cannot write gattherd.d"
python3 - "$tree" "${package%.deb}.spdx.json" <<'PYTHON'
import hashlib, json, pathlib, sys
document = json.load(open(sys.argv[2]))
for each in document["files"]:
    found = hashlib.sha256((pathlib.Path(sys.argv[1]) / each["fileName"]).read_bytes()).hexdigest()
    if found != each["checksums"][1]["checksumValue"]:
        sys.exit(f"package: the list of parts has another sum for {each['fileName']}")
names = {each["name"] for each in document["packages"]}
if missing := {"gattherd", "swift-runtime", "libdbus-1-3", "libsqlite3-0", "libc6"} - names:
    sys.exit(f"package: the list of parts has no {missing}")
PYTHON
for file in usr/share/gattherd/gattherd.schema.json lib/systemd/system/gattherd-backup.timer \
    usr/share/doc/gattherd/docs/operate.md; do
    [ -e "$tree/$file" ] || fail "there is no /$file"
done
inside gattherd profile list | contains heart-rate || fail "the profiles are not found"
inside runuser -u gattherd -- gattherd profile decode heart-rate 2a37 16480004 | contains 72 ||
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
    swift build -c release --package-path "$tree/srv/probe" >"$tree/tmp/swift.log" 2>&1 ||
        { tail -20 "$tree/tmp/swift.log" >&2; fail "a Swift profile does not build"; }
    [ "$(inside gattherd profile test /srv/probe/.build/release/libProbe.so)" = "2 passed, 0 failed" ] || fail "the tests of a Swift profile fail"
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
doctor_errors config | contains /etc/gattherd/token || fail "doctor passes a token that the service cannot read"
booted sh -c "chgrp gattherd /etc/gattherd/token && chmod g+r /etc/gattherd/token && gattherd check" >/dev/null || fail "the remedy does not help"
booted systemd-run --quiet --unit simulator gattherd-sim run --bus system /usr/share/gattherd/scenarios/lab.yaml
booted systemctl start gattherd || { booted journalctl --no-pager --unit gattherd >&2; fail "the service does not start"; }
both_ready() { [ "$(booted gattherd status | grep -c ' ready ')" = 2 ]; }
eventually both_ready || { booted gattherd status >&2; fail "the service connects nobody"; }
booted systemctl reload gattherd || fail "the service does not reload"
booted gattherd reload | contains "was reloaded" || fail "gattherd reload does not say what came of it"

step "add a device and restart, as the dashboard does"
device='{"address":"C0:FF:EE:00:00:77","name":"attic","profiles":["heart-rate"]}'
answers 401 POST peripherals/add "$device" without-token
answers 201 POST peripherals/add "$device"
[ "$(access_of etc/gattherd/gattherd.d/attic.yaml | cut -d' ' -f1)" = gattherd ] || fail "the added device has no file of the daemon"
knows_attic() { booted gattherd status | contains attic; }
eventually knows_attic || fail "the added device is not in the status"
[[ $(api GET "configuration/file?file=gattherd.yaml" "") == *'"obstacle":"the daemon cannot write in /etc/gattherd/'* ]] ||
    fail "the daemon may write the main file"
answers 200 POST configuration/file '{"file":"gattherd.d/history.yaml","text":"history: {max_size: 500MB}\n"}'
[[ $(api GET configuration "") == *'"restart_needed":["history"]'*'"can_restart":true'* ]] || fail "no restart is offered"
before=$(main_pid)
answers 202 POST restart '{}'
restarted() { [ "$(main_pid)" != "$before" ] && is_running; }
eventually restarted || fail "the dashboard does not restart the service"
eventually both_ready || { booted gattherd status >&2; fail "the restarted service connects nobody"; }
[ "$(booted systemctl show --property Result --value gattherd)" = success ] || fail "a restart counts as a failure"
booted systemctl stop gattherd
# The count of restarts is gone, also if systemd has forgotten the unit.
booted systemctl reset-failed gattherd 2>/dev/null || true
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
tar --list --file "$tree/$archive" | contains history.db || fail "the daily backup has no history"
booted gattherd restore "/$archive" >/dev/null 2>&1 && fail "a backup is restored below the running service"
booted systemctl stop gattherd
booted sh -c "mv /var/lib/gattherd /srv/old-state && mkdir /srv/old && mv /etc/gattherd/* /srv/old"
booted gattherd restore "/$archive" >"$tree/srv/restore.log" 2>&1 || { cat "$tree/srv/restore.log" >&2; fail "the backup cannot be restored"; }
booted gattherd check >/dev/null || fail "the service cannot read what was restored"
[ "$(access_of etc/gattherd/gattherd.d)" = "root gattherd 770" ] || fail "after a restore the daemon cannot write gattherd.d"
[[ "$(access_of etc/gattherd/gattherd.d/attic.yaml)" == "gattherd gattherd "* ]] || fail "the device of the dashboard is not restored"
booted systemctl start gattherd
eventually both_ready || { booted gattherd status >&2; fail "the restored service connects nobody"; }
answers 200 POST devices/attic/label '{"title":"Attic"}'
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
booted chmod 750 /etc/gattherd/gattherd.d
booted dpkg --install --force-confold /srv/9.9.9.deb >/dev/null 2>&1
[ "$(access_of etc/gattherd/gattherd.d)" = "root gattherd 750" ] || fail "an upgrade changes the permissions of gattherd.d"
! is_running || fail "an upgrade starts a service that was stopped"
booted systemctl start gattherd

step "remove, reinstall and purge, with the service running"
booted systemctl enable --quiet --now gattherd-backup.timer
has_timer() { booted systemctl is-active --quiet gattherd-backup.timer; }
booted apt-get remove -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null 2>&1
! has_process || fail "removing leaves the daemon running"
! has_timer || fail "removing leaves the timer of backups"
[ -e "$tree/var/lib/gattherd/gattherd.db" ] || fail "removing took the history"
booted dpkg --install --force-confold /srv/gattherd.deb >/dev/null 2>&1
eventually is_running || fail "after a removal and an installation the service does not run again"
eventually has_timer || fail "after a removal and an installation there are no daily backups"
booted apt-get purge -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null 2>&1
! has_process || fail "purging leaves the daemon running"
! has_timer || fail "purging leaves the timer of backups"
! booted id gattherd >/dev/null 2>&1 || fail "purging leaves the user"
[ ! -e "$tree/var/lib/gattherd" ] || fail "purging leaves the history"
[ "$(owner_of etc/gattherd/gattherd.d)" = "root root 755" ] || fail "purging leaves gattherd.d to nobody"
[ "$(owner_of etc/gattherd/gattherd.d/attic.yaml | cut -d' ' -f1,2)" = "root root" ] || fail "purging takes the added device, or leaves it to nobody"
[ "$(stat --format %U "$tree/$archive")" = root ] || fail "purging takes the backups, or leaves them to nobody"
rm -rf "$tree/var/lib/gattherd-backups"
[ ! -e "$tree/etc/systemd/system/multi-user.target.wants/gattherd.service" ] || fail "purging leaves the service enabled"
booted dpkg --install /srv/gattherd.deb >/dev/null 2>&1
! is_running || fail "an installation starts a service that nobody configured"
[ "$(access_of etc/gattherd/gattherd.d)" = "root gattherd 770" ] || fail "after a new installation the daemon cannot write gattherd.d"
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
rm -rf "$tree/etc/gattherd/token" "$tree"/etc/gattherd/gattherd.d/*
inside apt-get remove -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null
[ -e "$tree/var/lib/gattherd/gattherd.db" ] || fail "removing took the history"
mount -t tmpfs tmpfs "$tree/var/lib/gattherd"
touch "$tree/var/lib/gattherd/gattherd.db"
inside dpkg --purge gattherd >/dev/null 2>&1 || fail "purging fails while a disk is mounted for the history"
[ ! -e "$tree/var/lib/gattherd/gattherd.db" ] || fail "purging leaves the history on its disk"
umount "$tree/var/lib/gattherd"
inside dpkg --install --force-confold /srv/gattherd.deb >/dev/null 2>&1
inside apt-get remove -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null
inside apt-get purge -y -qq -o Dpkg::Use-Pty=0 gattherd >/dev/null 2>&1
left=$(cd "$tree" && find etc usr var/lib lib/systemd -name '*gattherd*' -not -path '*/dpkg/*' -not -path '*/apt/*')
[ -z "$left" ] || fail "purging leaves: $left"
step "install from a signed repository"
export GNUPGHOME=$keys
gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-generate-key 'packages <packages@packages.invalid>' default default never
"$build/repository" packages@packages.invalid "$tree/srv/repository" "$package" "$dev_package"
gpgconf --kill all
mkdir -p "$tree/etc/apt/keyrings"
cp "$tree/srv/repository/gattherd-archive-keyring.gpg" "$tree/etc/apt/keyrings/gattherd.gpg"
chmod -R go+rX "$tree/srv/repository" "$tree/etc/apt/keyrings"
update() { inside apt-get update -qq -o Dir::Etc::SourceList=/etc/apt/gattherd.list -o Dir::Etc::SourceParts=- -o APT::Get::List-Cleanup=0 --error-on=any "$@"; }
echo "deb [signed-by=/etc/apt/keyrings/gattherd.gpg] file:/srv/repository stable main" > "$tree/etc/apt/gattherd.list"
update || fail "apt does not accept the repository"
cp "$tree/etc/apt/gattherd.list" "$tree/etc/apt/sources.list.d/"
inside apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "gattherd=$(dpkg-deb --field "$package" Version)" >/dev/null 2>&1 ||
    fail "gattherd does not install from the repository"
inside gattherd --version >/dev/null
sed -i 's/^Suite: .*/Suite: other/' "$tree/srv/repository/dists/stable/InRelease"
rm -rf "$tree"/var/lib/apt/lists/*srv_repository*
update 2>/dev/null && fail "apt accepts a changed repository"
step "good"
