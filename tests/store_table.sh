#!/bin/sh
# One table from what the tests of the store have seen: its claims, and the engines. Usage: store_table.sh BINARY...
# A claim is the name of a test that runs on both engines. "-": the claim is about the other engine only.
for binary in "$@"; do cat "$binary.log"; done | awk '
    /^engine: / { engine = $2; next }
    /^\[ +OK +\]|^\[ +FAILED +\] [a-z]/ {
        claim = $NF
        if (engine == "" || claim == "below:") next
        if (!(claim in seen)) { seen[claim] = 1; order[++n] = claim }
        got[claim, engine] = $2 == "OK" ? "yes" : "NO"
    }
    /^\[==========\] [0-9]+ test\(s\) run/ { engine = "" }
    function cell(claim, engine) { return (claim, engine) in got ? got[claim, engine] : "-" }
    END {
        printf "%-72s %-7s %s\n", "claim of the store", "SQLite", "PostgreSQL"
        for (i = 1; i <= n; i++) {
            words = order[i]
            gsub("_", " ", words)
            printf "%-72s %-7s %s\n", words, cell(order[i], "SQLite"), cell(order[i], "PostgreSQL")
        }
    }'
