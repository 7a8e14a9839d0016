#!/usr/bin/env bash
# Boots the machine, runs a command inside as root, and exits with its status.
#
#   boot.sh [options] COMMAND [ARGUMENT...]
#   boot.sh [options] --shell             an interactive shell with helpers (guest/shell-helpers)
#
#   --share FOLDER    a host folder, writable at /share inside (default: a temporary one)
#   --timeout SECONDS the limit for the command; then everything is killed and the status is 124 (default 1800)
#   --memory SIZE     the machine's memory (default 4G); the host provides only what is used
#
# This checkout and the Swift runtime have the same paths inside as outside, read-only. Each boot starts with a fresh
# disk. Other statuses: 125 if the machine ended without a status, 69 if it is not built. The kernel's messages are
# in FOLDER/console.log. Several machines may run at once.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/common.sh"

share='' timeout=1800 memory=4G is_shell=''
while [ $# -gt 0 ]; do
  case $1 in
    --share) share=$2; shift 2 ;;
    --timeout) timeout=$2; shift 2 ;;
    --memory) memory=$2; shift 2 ;;
    --shell) is_shell=1; shift ;;
    --help|-h) sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//'; exit 0 ;;
    --) shift; break ;;
    -*) fail 64 "unknown option $1; see boot.sh --help" ;;
    *) break ;;
  esac
done
[ -n "$is_shell" ] || [ $# -gt 0 ] || fail 64 "no command; see boot.sh --help"
[ -x "$VM/linux" ] && [ -f "$VM/disk.img" ] || fail 69 "no machine in $VM; run build.sh"

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

# User Mode Linux keeps its memory in an unlinked file. On a tmpfs that becomes full, the machine dies with SIGBUS.
TMPDIR=$run
size=$(numfmt --from=iec "$memory") || fail 64 "--memory takes a size such as 4G, not $memory"
[ "$(df --output=avail -B1 /dev/shm 2>/dev/null | tail -1)" -gt "$size" ] 2>/dev/null && TMPDIR=/dev/shm
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
