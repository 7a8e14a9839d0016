#!/usr/bin/env bash
# Runs all tests, which must be built, as three programs side by side, which mostly wait.
# Prints each suite that has passed and every failure, and the failures once more at the end.
# The whole output is kept in .build/tests.
set -uo pipefail
cd "$(dirname "$0")/.."
logs=.build/tests
programs=$(swift build --show-bin-path) || exit

# part NAME OPTION…: runs one of the programs. A test that exceeds the time limit waits for an event that never comes.
part() {
  local name=$1
  shift
  NO_COLOR=1 timeout --foreground --kill-after=10s 30m "$programs/gattherdPackageTests.xctest" \
    --testing-library swift-testing --no-parallel "$@" 2>&1 \
    | tee "$logs/$name.log" \
    | grep --line-buffered -E '^(✔ Suite|✘|↳|. Test run)'
  return "${PIPESTATUS[0]}"
}

rm -rf "$logs"
mkdir -p "$logs"
part scenarios --filter '^(BlueZScenario|GattherdPostgres)Tests' &
running=($!)
part facts --filter '^(BlueZFact|Gateway|Integration)Tests' &
running+=($!)
status=0
part rest --skip '^(BlueZ(Scenario|Fact)|Gateway|Integration|GattherdPostgres)Tests' || status=$?
for program in "${running[@]}"; do
  wait "$program" || status=$?
done
[ "$status" = 0 ] && exit

for log in "$logs"/*.log; do
  grep -q 'Test run .* passed' "$log" && continue
  echo "make: failed, see $log:" >&2
  if grep -q '^✘ Test run' "$log"; then
    grep -E '^(✘|↳)' "$log" >&2
  else
    tail -40 "$log" >&2
    echo "make: it ended early, or was stopped after 30 minutes" >&2
  fi
done
exit "$status"
