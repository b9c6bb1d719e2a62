#!/bin/bash
# Fuzzes each program for an equal share of FUZZ_S seconds, TEST_JOBS at a time, and adds what was done to
# FUZZ_SUM (build/fuzz/sum.json). Each begins with tests/fuzz/corpus/NAME, and with what earlier runs have
# found (build/fuzz/found/NAME). Dictionaries: tests/fuzz/edges.dict and tests/fuzz/NAME.dict.
# Usage: BUILD=build FUZZ_S=60 tests/fuzz/run.sh PROGRAM...
#        BUILD=build tests/fuzz/run.sh --corpus PROGRAM...     replaces the corpora by their minimum
set -u
build=${BUILD:-build}/fuzz jobs=${TEST_JOBS:-1} sum=${FUZZ_SUM:-${BUILD:-build}/fuzz/sum.json}
here=tests/fuzz
LENGTH_MAX=20000 # bytes of an input
export ASAN_OPTIONS=allocator_may_return_null=1:${ASAN_OPTIONS:-} UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$here/leaks:print_suppressions=0

# A number of a harness in the sum; 0 if it has none.
told() {
    local n
    n=$(sed -n "s/^ *\"$1\": {.*\"$2\": \([0-9]*\).*/\1/p" "$sum" 2>/dev/null)
    echo "${n:-0}"
}

# Runs one program; leaves "executions seconds features crashes" in NAME.done.
run_one() {
    local name=${1##*/} share=$2 begun=$SECONDS code=0
    local log=$build/$name.log dict=$build/$name.dict
    mkdir -p "$build/found/$name" "$build/crashes"
    cat $here/edges.dict "$here/$name.dict" >"$dict" 2>/dev/null
    "$1" -max_total_time="$share" -max_len=$LENGTH_MAX -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -detect_leaks=0 \
        -close_fd_mask=3 -dict="$dict" -artifact_prefix="$build/crashes/$name-" "$build/found/$name" \
        $([ -d $here/corpus/"$name" ] && echo $here/corpus/"$name") >"$log" 2>&1 </dev/null || code=$?
    local executions features
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    features=$(grep -o 'ft: [0-9]*' "$log" | tail -n 1 | cut -d ' ' -f 2)
    echo "${executions:-0} $((SECONDS - begun)) ${features:-0} $((code != 0))" >"$build/$name.done"
    printf '%-4s %-16s %12d executions %5d s %6d features\n' "$([ $code = 0 ] && echo ok || echo FAIL)" \
        "$name" "${executions:-0}" $((SECONDS - begun)) "${features:-0}"
    [ $code = 0 ] && return
    grep -aE -A 12 'not so:|ERROR:|runtime error|Assertion' "$log" | head -n 40 | sed 's/^/    | /'
    sed -n "s|^.*written to \(.*\)|    again: $1 \1|p" "$log"
}

# Adds the run to the sum, and prints the whole. A harness that did not run keeps its numbers.
add_up() {
    local name all=0 crashed=0 separator= text= executions seconds features crashes before
    for name in $({ printf '%s\n' "${@##*/}"; sed -n 's/^ *"\([^"]*\)": {.*/\1/p' "$sum" 2>/dev/null; } | sort -u); do
        executions=0 seconds=0 features=0 crashes=0 before=$(told "$name" features)
        [[ " ${*##*/} " != *" $name "* ]] || read -r executions seconds features crashes <"$build/$name.done"
        crashed=$((crashed + crashes)) executions=$((executions + $(told "$name" executions)))
        text+=$separator$(printf '"%s": {"executions": %d, "seconds": %d, "features": %d, "crashes": %d}' "$name" \
            $executions $((seconds + $(told "$name" seconds))) $((features > before ? features : before)) \
            $((crashes + $(told "$name" crashes))))
        separator=$',\n  ' all=$((all + executions))
    done
    printf '{\n  %s\n}\n' "$text" >"$sum"
    echo "$all executions in all runs ($sum)"
    return $((crashed > 0))
}

# The fewest files that reach all that the corpus and the found files reach.
minimise() {
    local name=${1##*/} to
    to=$(mktemp -d)
    "$1" -merge=1 -max_len=$LENGTH_MAX -close_fd_mask=3 "$to" $here/corpus/"$name" "$build/found/$name" \
        >"$build/$name.merge.log" 2>&1 || { tail -n 5 "$build/$name.merge.log"; return 1; }
    mkdir -p $here/corpus/"$name" && rm -f $here/corpus/"$name"/*
    mv "$to"/* $here/corpus/"$name"/ && rmdir "$to"
    echo "$name: $(ls $here/corpus/"$name" | wc -l) files, $(cat $here/corpus/"$name"/* | wc -c) bytes"
}

mkdir -p "$build"
if [ "$1" = --corpus ]; then
    shift
    for program in "$@"; do minimise "$program" || exit 1; done
    exit
fi
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM HUP
share=$((${FUZZ_S:-60} * jobs / $#))
for program in "$@"; do
    while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do wait -n; done
    run_one "$program" $((share > 0 ? share : 1)) &
done
wait
add_up "$@"
