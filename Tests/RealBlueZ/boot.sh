#!/usr/bin/env bash
# Boots the machine, runs a command inside as root, and exits with its status.
#
#   boot.sh [options] COMMAND [ARGUMENT...]
#   boot.sh [options] --shell             an interactive shell with helpers (guest/shell-helpers)
#
#   --share FOLDER    of the host, /share inside: the only one that can be written to (default: one that is removed)
#   --timeout SECONDS after which everything is killed; the status is then 124 (default 1800)
#   --memory SIZE     taken from the host only when it is touched (default 2G)
#
# This checkout and the Swift runtime have the same paths inside as outside, read-only. The disk is fresh at each
# boot. Other statuses: 125 when the machine ended without one, 69 when it is not built. The kernel's messages are
# in FOLDER/console.log. Several machines may run at once.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/common.sh"

share='' timeout=1800 memory=2G is_shell=''
while [ $# -gt 0 ]; do
  case $1 in
    --share) share=$2; shift 2 ;;
    --timeout) timeout=$2; shift 2 ;;
    --memory) memory=$2; shift 2 ;;
    --shell) is_shell=1; shift ;;
    --help|-h) sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//'; exit 0 ;;
    --) shift; break ;;
    -*) fail 64 "there is no option $1" ;;
    *) break ;;
  esac
done
[ -n "$is_shell" ] || [ $# -gt 0 ] || fail 64 "no command; see boot.sh --help"
[ -x "$VM/linux" ] && [ -f "$VM/disk.img" ] || fail 69 "there is no machine in $VM; run build.sh"

machine=
run=$(mktemp -d "$VM/run-XXXXXX") || exit 73
finish() {
  [ -z "$machine" ] || kill -KILL -- "-$machine" 2>/dev/null
  rm -rf "$run"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p "${share:=$run/share}" && share=$(cd "$share" && pwd) || exit 73
checkout=$(cd "$here/../.." && pwd)
swift=$(readlink -f "$(command -v swift)") || fail 69 "no Swift toolchain in PATH"
runtime=$(cd "$(dirname "$swift")/../lib/swift/linux" && pwd) || fail 69 "no run-time libraries beside $swift"

cp "$here"/guest/{init,run-tests,shell-helpers} "$run/"
printf '%q ' "$@" >"$run/job"
printf 'CHECKOUT=%q SHARE=%q RUNTIME=%q IS_SHELL=%q\n' "$checkout" "$share" "$runtime" "$is_shell" >"$run/settings"

# User Mode Linux keeps its memory in a file that has no name; it must not be on a tmpfs that is too small for it.
TMPDIR=$run
[ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -1)" -gt 2000000 ] 2>/dev/null && TMPDIR=/dev/shm
export TMPDIR

arguments=(mem="$memory" ubd0="$run/disk.cow,$VM/disk.img" root=/dev/ubda rootfstype=ext4 ro init=/sbin/stub
  uml_dir="$run" umid=machine quiet panic=1 gattherd.run="$run" con=null)

if [ -n "$is_shell" ]; then
  "$VM/linux" "${arguments[@]}" con0=fd:0,fd:1
  stty sane 2>/dev/null
else
  touch "$run/output"
  setsid "$VM/linux" "${arguments[@]}" con0=null,fd:1 </dev/null >"$share/console.log" 2>&1 &
  machine=$!
  disown $machine
  tail -n +1 -f --pid=$machine "$run/output" &
  output=$!
  end=$((SECONDS + timeout))
  while kill -0 $machine 2>/dev/null; do
    [ $SECONDS -lt $end ] || fail 124 "killed after $timeout s"
    sleep 0.1
  done
  machine=
  wait $output
fi
[ -f "$run/status" ] || fail 125 "the machine ended without a status; the kernel said: $(tail -3 "$share/console.log")"
exit "$(cat "$run/status")"
