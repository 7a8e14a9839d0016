#!/usr/bin/env bash
# Runs the tests whose names match FILTER inside the machine, with their output and status. Builds the machine if it is
# missing. The tests must be built. Keeps the output, the logs and the kernel's messages in .build/real-bluez. Repeats
# the failures at the end, and the kernel's out-of-memory messages if there are any.
#
#   test.sh FILTER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
logs=.build/real-bluez

"$here/build.sh"
rm -rf "$logs"
mkdir -p "$logs/logs"
status=0
"$here/boot.sh" --share "$logs" --timeout "${GATTHERD_VM_TIMEOUT:-3600}" \
  env GATTHERD_RECORDS="${GATTHERD_RECORDS:-}" /run/host/run-tests "$(swift build --show-bin-path)" "$1" | tee "$logs/tests.log" || status=$?
[ $status = 0 ] && exit

echo "real-bluez: failed, see $logs:" >&2
grep -E '^[^[:alnum:]]*(✘|↳)' "$logs/tests.log" >&2 || tail -40 "$logs/tests.log" >&2
if grep -aE 'Out of memory|oom-kill|oom_reaper' "$logs/console.log" >&2; then
  echo "real-bluez: the machine ran out of memory; boot.sh --memory sets its size" >&2
fi
exit $status
