#!/bin/sh
# Runs test binaries one after the other, each under a timeout, and closes with the counts.
# Output of a passing binary is kept in a log; that of a failing one is shown.
# Usage: BUILD=build TEST_TIMEOUT_S=300 tests/run.sh BINARY...
set -u
build=${BUILD:-build}
limit=${TEST_TIMEOUT_S:-300}
passed=0 failed=0 skipped=0
export BUILD="$build"
for binary in "$@"; do
    name=${binary#"$build"/tests/}
    log=$binary.log
    start=$(date +%s)
    timeout --kill-after=10 "$limit" "$binary" >"$log" 2>&1
    code=$?
    ok=$(grep -c '^\[       OK \]' "$log")
    bad=$(grep -c '^\[  FAILED  \] [a-zA-Z0-9_]*$' "$log")
    skip=$(grep -c '^\[  SKIPPED \] [a-zA-Z0-9_]*$' "$log")
    bad=$((bad / 2 + bad % 2)) # cmocka names each failure twice: at once and in its summary
    note=
    if [ $code = 124 ] || [ $code = 137 ]; then note=" timed out after $limit s"; fi
    bad=$((bad + $(grep -c '^\[  FAILED  \] GROUP' "$log"))) # a failed teardown does not change the status
    if [ $code != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    if [ "$ok" = 0 ] && [ "$bad" = 0 ]; then bad=1 note=" ran no test"; fi
    printf '%-4s %-44s %3d ok %3d failed %4d s%s\n' "$([ "$bad" = 0 ] && echo ok || echo FAIL)" \
        "$name" "$ok" "$bad" "$(($(date +%s) - start))" "$note"
    if [ "$bad" != 0 ]; then sed 's/^/    | /' "$log" | tail -n 60; fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
done
if [ "$skipped" != 0 ]; then
    echo "$skipped skipped: a skip counts as a failure"
    failed=$((failed + skipped))
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
