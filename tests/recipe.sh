#!/bin/sh
# Follows a recipe of a README in a copy of the tree: pastes its blocks, runs its commands. Prints what
# the commands print. Fails if a block has no place, a command fails, or the recipe changes more than
# three files. The format of a recipe: tests/README.md.
# Usage: BUILD=build tests/recipe.sh README "a new operation"
set -eu
cd "$(dirname "$0")/.."
readme=$1 title=$2
build=${BUILD:-build}
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES SUITE SAN CC CFLAGS LDFLAGS V B || :
copy=$(mktemp -d "${TMPDIR:-/tmp}/recipe-XXXXXX")
trap 'rm -rf "$copy"' EXIT
trap 'exit 130' INT TERM HUP

# One file "N.ACTION" for each block, with its text, and "N.at" with path and line.
mkdir "$copy/.steps"
awk -v title="## Recipe: $title" -v steps="$copy/.steps" '
function fail(text) { print FILENAME ":" FNR ": " text > "/dev/stderr"; failed = 1; exit 1 }
function begin_block(    place, action) {
    if ($0 == "```sh") action = "run"
    else if (match(prose, /New file `[^`]+`:$/)) action = "new"
    else if (match(prose, /In `[^`]+`, after the line `[^`]+`:$/)) action = "after"
    else if (match(prose, /In `[^`]+`, before the line `[^`]+`:$/)) action = "before"
    else if (match(prose, /In `[^`]+`, instead of the line `[^`]+`:$/)) action = "instead"
    else fail("no sentence says where this block belongs: " prose)
    n++
    out = sprintf("%s/%02d.%s", steps, n, action)
    printf "" > out
    if (action != "run") {
        split(substr(prose, RSTART, RLENGTH), place, "`")
        if (action != "new" && !(place[2] in changed)) {
            changed[place[2]] = 1
            if (++n_changed > 3) fail("the fourth file to change: " place[2])
        }
        printf "%s\n%s\n", place[2], place[4] > (out ".at")
    }
    inside = 1
}
/^## / && !inside { here = $0 == title; found += here; next }
!here { next }
inside && $0 == "```" { close(out); inside = 0; prose = ""; next }
inside { print > out; next }
/^```/ { begin_block(); next }
/^$/ { next_clears = 1; next }
{ prose = next_clears ? $0 : prose " " $0; next_clears = 0 }
END {
    if (failed) exit 1
    if (found != 1 || n == 0) fail(found " recipes \"" title "\", " n + 0 " blocks")
}' "$readme"

# The objects come along with their times, so that make compiles what the recipe changes.
git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2>/dev/null |
    tar -x -C "$copy"
mkdir -p "$copy/build"
cp -a "$build/obj" "$build"/*.a "$copy/build"
[ "$build" = build ] || find "$copy/build/obj" -name '*.d' -exec sed -i "s|$build/|build/|g" {} +

cd "$copy"
export BUILD=build
for step in .steps/*; do
    case $step in *.at) continue ;; *.run)
        code=0
        sh -eu "$step" >.out 2>&1 </dev/null || code=$?
        sed 's/^/    /' .out
        [ $code = 0 ] || { echo "$readme: a command failed" >&2 && exit 1; }
        continue
        ;;
    esac
    path=$(sed -n 1p "$step.at") line=$(sed -n 2p "$step.at") action=${step##*.}
    if [ "$action" = new ]; then
        [ ! -e "$path" ] || { echo "$readme: $path is there already" >&2 && exit 1; }
        mkdir -p "$(dirname "$path")"
        cp "$step" "$path"
        continue
    fi
    LINE=$line awk -v action="$action" -v step="$step" '
        function paste(    text) { while ((getline text < step) > 0) print text; close(step); n++ }
        { stripped = $0; sub(/^[ \t]+/, "", stripped) }
        stripped != ENVIRON["LINE"] { print; next }
        action == "before" { paste() }
        action != "instead" { print }
        action != "before" { paste() }
        END { exit n != 1 }' "$path" >.pasted || { echo "$readme: not once in $path: $line" >&2 && exit 1; }
    cat .pasted >"$path"
done
