#!/bin/sh
# Runs benchmarks one after the other; the JSON of each goes to BENCHMARK.json.
# Usage: BUILD=build tests/bench.sh BENCHMARK...
failed=0
for bench in "$@"; do
    echo "-- ${bench##*/}"
    "$bench" >"$bench.json" || { echo "${bench##*/} failed" && failed=1; }
done
exit $failed
