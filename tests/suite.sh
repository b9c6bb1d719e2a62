#!/bin/sh
# Prints those of the test sources that tests/suites wants in a suite.
# Usage: tests/suite.sh asan|tsan|plain tests/PART/test_NAME.c...
suite=$1
shift
printf '%s\n' "$@" | awk -v suite="$suite" -v table="${SUITES:-tests/suites}" '
BEGIN {
    while ((getline line < table) > 0) {
        if (line ~ /^(#|$)/) continue
        split(line, word, " ")
        gsub(/[*]/, "[^/]*", word[1])
        pattern[++rows] = "^tests/(.+/)?" word[1] "[.]c$"
        suites[rows] = word[2]
    }
}
{
    wanted = "asan,tsan"
    for (i = rows; i > 0; i--)
        if ($0 ~ pattern[i]) wanted = suites[i]
    if (index("," wanted ",", "," suite ",")) print
}'
