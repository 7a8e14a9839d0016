#!/usr/bin/env bash
# Runs the tests whose names match FILTER inside the machine, with their own output and status; builds the machine
# when it is missing. The tests must be built. What they say, what they leave in /share/logs, and the kernel's messages
# are kept; what failed is said once more at the end.
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
  /run/host/run-tests "$(swift build --show-bin-path)" "$1" | tee "$logs/tests.log" || status=$?
[ $status = 0 ] && exit

echo "real-bluez: failed, see $logs:" >&2
grep -E '^[^[:alnum:]]*(✘|↳)' "$logs/tests.log" >&2 || tail -40 "$logs/tests.log" >&2
exit $status
