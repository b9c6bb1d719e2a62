#!/bin/sh
# Runs test binaries, TEST_JOBS at a time, each under a timeout, and closes with the counts.
# Output of a passing binary is kept in a log; that of a failing one is shown.
# Usage: BUILD=build TEST_TIMEOUT_S=300 TEST_JOBS=2 tests/run.sh BINARY...
set -u
export BUILD="${BUILD:-build}" TEST_TIMEOUT_S="${TEST_TIMEOUT_S:-300}"

# One binary: leaves "passed failed skipped" in BINARY.count, prints its line in one piece.
run_one() {
    binary=$1 log=$1.log
    start=$(date +%s)
    timeout --kill-after=10 "$TEST_TIMEOUT_S" "$binary" >"$log" 2>&1
    code=$?
    ok=$(grep -c '^\[       OK \]' "$log")
    bad=$(grep -c '^\[  FAILED  \] [a-zA-Z0-9_]*$' "$log")
    skip=$(grep -c '^\[  SKIPPED \] [a-zA-Z0-9_]*$' "$log")
    bad=$((bad / 2 + bad % 2)) # cmocka names each failure twice: at once and in its summary
    note=
    if [ $code = 124 ] || [ $code = 137 ]; then note=" timed out after $TEST_TIMEOUT_S s"; fi
    bad=$((bad + $(grep -c '^\[  FAILED  \] GROUP' "$log"))) # a failed teardown does not change the status
    if [ $code != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    if [ "$ok" = 0 ] && [ "$bad" = 0 ]; then bad=1 note=" ran no test"; fi
    echo "$ok $bad $skip" >"$binary.count"
    line=$(printf '%-4s %-44s %3d ok %3d failed %4d s%s' "$([ "$bad" = 0 ] && echo ok || echo FAIL)" \
        "${binary#"$BUILD"/tests/}" "$ok" "$bad" "$(($(date +%s) - start))" "$note")
    if [ "$bad" != 0 ]; then
        line="$line
$({
            grep -E -A 1 '^(ERROR: |\[  ERROR)' "$log"
            echo ...
            grep -vE '^\[ (RUN     |      OK) \]' "$log" | tail -n 60
        } | sed 's/^/    | /')"
    fi
    printf '%s\n' "$line"
}

if [ "${1:-}" = --one ]; then
    run_one "$2"
    exit 0
fi

for binary in "$@"; do rm -f "$binary.count"; done
printf '%s\n' "$@" | xargs -P "${TEST_JOBS:-1}" -n 1 "$0" --one
passed=0 failed=0 skipped=0
for binary in "$@"; do
    counts="0 1 0" # no record: it was not run
    [ ! -e "$binary.count" ] || counts=$(cat "$binary.count")
    read -r ok bad skip <<EOF
$counts
EOF
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    [ "$bad" = 0 ] || echo "FAIL ${binary#"$BUILD"/tests/}:" \
        $(sed -n 's/^\[  FAILED  \] \([a-zA-Z0-9_]*\)$/\1/p' "$binary.log" 2>/dev/null | sort -u)
done
if [ "$skipped" != 0 ]; then
    echo "$skipped skipped: a skip counts as a failure"
    failed=$((failed + skipped))
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
