#!/bin/bash
# Runs test programs, TEST_JOBS at a time, the slowest of the last run first, and closes with the counts.
# Most programs wait for something, so up to twice as many run while the processors idle.
# One line per program. The output of a program is kept beside it in PROGRAM.log; of one that fails the
# useful lines are shown, again at the end. A program that takes longer than TEST_TIMEOUT_S is ended, and
# its log says in which test it was and where each thread stood. Ctrl-C ends everything.
# Usage: BUILD=build TEST_TIMEOUT_S=300 TEST_JOBS=2 tests/run.sh PROGRAM...
set -u
export BUILD="${BUILD:-build}"
limit_s=${TEST_TIMEOUT_S:-300} jobs=${TEST_JOBS:-1}

# What a reader needs of a failed program's log: which tests, why, where.
useful_lines() {
    if grep -q '^ERROR: timed out' "$1"; then
        sed -n '/^ERROR: timed out/,$p' "$1" | head -n 100
        return
    fi
    grep -E -A 1 '^(ERROR: |\[  ERROR)' "$1" | head -n 40
    echo ...
    grep -vE '^\[( RUN      |       OK |==========)\]' "$1" | tail -n 60
}

# The processes of a session. Not by awk alone: it ends at a file that has vanished.
members() {
    cat /proc/[0-9]*/stat 2>/dev/null |
        awk -v session="$1" '{ pid = $1; sub(/.*\) /, ""); if ($4 == session && $1 != "Z") print pid }'
}

# Where all threads of a program and of the processes that it has started stand.
stacks() {
    local pid
    for pid in $(members "$1"); do
        echo "== $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c -120)"
        timeout 20 eu-stack --pid "$pid" -n 24 2>&1 ||
            timeout 60 gdb --batch --pid "$pid" -ex 'thread apply all backtrace 24' 2>&1 ||
            echo "no stacks: elfutils or gdb is missing, or this machine lets nobody trace a process"
    done | head -n 1500
}

# In a session of its own, so that all that it starts can be ended with it. Prints the status last.
# A shell's background processes ignore SIGINT; a program must not inherit that.
start() {
    env --default-signal=INT,QUIT setsid "$1" >"$1.log" 2>&1 </dev/null &
    echo $!
    wait $!
    echo $?
}

# Leaves "passed failed skipped" in PROGRAM.count and its seconds in PROGRAM.seconds, prints its line.
run_one() {
    local program=$1 log=$1.log pid code=
    local begun=$SECONDS note=
    exec {output}< <(start "$program")
    read -r -u "$output" pid
    trap 'kill -KILL -- "-$pid"; exit 130' INT TERM HUP
    if ! read -r -t "$limit_s" -u "$output" code; then
        note="timed out after $limit_s s in $(sed -n 's/^\[ RUN      \] //p' "$log" | tail -n 1)"
        { echo "ERROR: $note" && stacks "$pid"; } >>"$log"
        kill -KILL -- "-$pid"
        code=124
    fi
    exec {output}<&-
    local ok bad skip
    ok=$(grep -c '^\[       OK \]' "$log")
    bad=$(grep -c '^\[  FAILED  \] [a-zA-Z0-9_]*$' "$log")
    skip=$(grep -c '^\[  SKIPPED \] [a-zA-Z0-9_]*$' "$log")
    bad=$((bad / 2 + bad % 2)) # cmocka names each failure twice: at once and in its summary
    bad=$((bad + $(grep -c '^\[  FAILED  \] GROUP' "$log"))) # a failed teardown does not change the status
    [ "$code" = 0 ] || [ "$bad" != 0 ] || bad=1
    [ "$ok" != 0 ] || [ "$bad" != 0 ] || { bad=1 note="ran no test"; }
    echo "$ok $bad $skip" >"$program.count"
    echo $((SECONDS - begun)) >"$program.seconds"
    local line
    line=$(printf '%-4s %-44s %3d ok %3d failed %4d s %s' "$([ "$bad" = 0 ] && echo ok || echo FAIL)" \
        "${program#"$BUILD"/tests/}" "$ok" "$bad" $((SECONDS - begun)) "$note")
    [ "$bad" = 0 ] || line+=$'\n'$(useful_lines "$log" | sed 's/^/    | /')
    printf '%s\n' "$line" # in one piece
}

# The slowest of the last run first; what was never run here goes by the seconds in tests/times.
by_time() {
    local program seconds
    for program in "$@"; do
        seconds=$(cat "$program.seconds" 2>/dev/null ||
            awk -v name="${program#"$BUILD"/tests/}" '$2 == name { print $1 }' "$(dirname "$0")/times")
        echo "${seconds:-0} $program"
    done | sort -rn | cut -d ' ' -f 2
}

# The processors' time since boot, and how much of it they idled, in ticks.
ticks() {
    local user nice system idle wait irq soft steal rest
    read -r _ user nice system idle wait irq soft steal rest </proc/stat
    echo "$((user + nice + system + idle + wait + irq + soft + steal)) $idle"
}

# May a further program start? Not before the last one had a second to show what it needs.
may_start() {
    local running all idle all_now idle_now
    running=$(jobs -pr | wc -l)
    [ "$running" -ge "$jobs" ] || return 0
    [ "$running" -lt $((2 * jobs)) ] || return 1
    read -r all idle < <(ticks)
    sleep 1
    read -r all_now idle_now < <(ticks)
    [ $((100 * (idle_now - idle))) -ge $((IDLE_PERCENT * (all_now - all))) ]
}
readonly IDLE_PERCENT=50

trap 'kill $(jobs -p) 2>/dev/null; wait; echo "interrupted" >&2; exit 130' INT TERM HUP
mapfile -t programs < <(by_time "$@")
for program in "${programs[@]}"; do rm -f "$program.count"; done
for program in "${programs[@]}"; do
    until may_start; do sleep 0.2; done
    run_one "$program" &
done
wait

passed=0 failed=0 skipped=0
for program in "${programs[@]}"; do
    read -r ok bad skip < <(cat "$program.count" 2>/dev/null || echo 0 1 0) # no record: it was not run
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    [ "$bad" != 0 ] || continue
    echo "FAIL ${program#"$BUILD"/tests/}:" \
        $(sed -n 's/^\[  FAILED  \] \([a-zA-Z0-9_]*\)$/\1/p' "$program.log" 2>/dev/null | sort -u)
    useful_lines "$program.log" 2>&1 | sed 's/^/    | /'
done
if [ "$skipped" != 0 ]; then
    echo "$skipped skipped: a skip counts as a failure"
    failed=$((failed + skipped))
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
