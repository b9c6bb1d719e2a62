#!/usr/bin/env python3
"""Prints what the runs of a build with --coverage have reached, a line per room, and the goal of each.

Usage: coverage.py BUILD [--json FILE] [--all] [FILE|ROOM...]
FILE and ROOM list the branches that nobody took. With --all, a room below its goal is an error.

How it counts:
- An assertion that fails is a defect of ours, so the branches of an assert() are not counted.
- Nor are those of a line with a macro of uthash or a loop macro of jansson, which are no code of ours.
- A failed allocation counts like any other branch. tests/lib/tools/scarce.h makes them fail.
- "uncovered: reason" in a comment, on a line or alone above it, takes the branches of that line out. It is for
  what a test cannot reach. If a test does reach them all, the marker is an error.
- A process that is killed leaves no counts. One that ends by _exit() does (coverage.h).
"""
import argparse
import collections
import glob
import json
import os
import re
import subprocess
import sys

GOAL = 90
# Rooms and files whose branches are all to be taken: locks, critical section, fences, idempotency, money.
CORE = ("lockkit/core/", "app/section/", "app/business/", "db/db_write.c", "db/columns.c",
        "db/sqlite/sqlite_write.c", "db/postgres/postgres_write.c", "db/postgres/postgres_settle.c")
CORE_GOAL = 100
UNCOUNTED = re.compile(r"\bassert\(|\b(HASH|DL|LL)_[A-Z_]+\(|\bjson_(array|object)_foreach\(")
MARKER = re.compile(r"/\*\s*uncovered: (?=\S)")


class Source:
    """The lines of a file that count in a way of their own."""

    def __init__(self, path):
        self.uncounted, self.marked = set(), {}
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        depth = 0
        for number, line in enumerate(lines, 1):
            begin = UNCOUNTED.search(line)
            if depth or begin:
                rest = line[begin.start():] if begin and not depth else line
                depth += rest.count("(") - rest.count(")")
                self.uncounted.add(number)
            if MARKER.search(line):
                alone = line.lstrip().startswith("/*")
                while alone and "*/" not in line:
                    number += 1
                    line = lines[number - 1]
                self.marked[number + 1 if alone else number] = number


class File:
    """What was reached in one source file, over all objects that include it."""

    def __init__(self, path):
        self.source = Source(path)
        self.lines = collections.Counter()
        self.functions = collections.Counter()
        self.branches = {}

    def add(self, record):
        for function in record["functions"]:
            self.functions[function["name"]] += function["execution_count"]
        for line in record["lines"]:
            number = line["line_number"]
            self.lines[number] += line["count"]
            if number in self.source.uncounted or not line["branches"]:
                continue
            key = (number, line.get("function_name"))
            taken = self.branches.setdefault(key, [0] * len(line["branches"]))
            for i, branch in enumerate(line["branches"][:len(taken)]):
                taken[i] += branch["count"]

    def open_branches(self):
        return [(number, i, len(taken)) for (number, _), taken in sorted(self.branches.items(), key=lambda b: b[0][0])
                for i, count in enumerate(taken) if count == 0]

    def counts(self):
        marked = self.source.marked
        counted = [n for key, taken in self.branches.items() if key[0] not in marked for n in taken]
        lines = [n for number, n in self.lines.items() if number not in marked]
        missing = {number for number, _, _ in self.open_branches()}
        return {
            "lines": len(lines), "lines_reached": sum(n > 0 for n in lines),
            "branches": len(counted), "branches_taken": sum(n > 0 for n in counted),
            "functions": len(self.functions), "functions_called": sum(n > 0 for n in self.functions.values()),
            "marked": len(marked),
            "marked_in_vain": sorted(line for line in marked
                                     if line not in missing and self.lines.get(line, 1) > 0),
        }


def read_all(build):
    files = {}
    notes = glob.glob(build + "/obj/**/*.gcno", recursive=True)
    notes = sorted(path for path in notes if not path.startswith(build + "/obj/tests/"))
    if not notes:
        sys.exit(build + ": nothing was built with --coverage")
    gcov = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", *notes],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    stale = gcov.stderr.decode().count("stamp mismatch")
    if stale:
        print(f"{stale} objects are newer than their counts: run their tests again", file=sys.stderr)
    for text in gcov.stdout.splitlines():
        for record in json.loads(text)["files"] if text.startswith(b"{") else []:
            path = os.path.relpath(record["file"])
            if not path.startswith(("/", "..", "tests/")):
                files.setdefault(path, None)
                files[path] = files[path] or File(path)
                files[path].add(record)
    return files


def percent(part, whole):
    return 100 * part / whole if whole else 100


def table(files):
    """Rows of sums: the rooms, then what the goal of 100 % is for."""
    rows = collections.OrderedDict()
    for path in sorted(files):
        names = [os.path.dirname(path)] + (["core files of db"] if path.startswith("db/") and path in CORE else [])
        for name in names:
            row = rows.setdefault(name, collections.Counter())
            row.update({key: value for key, value in files[path].counts().items() if key != "marked_in_vain"})
    return rows


def goal_of(name):
    return CORE_GOAL if (name + "/").startswith(CORE) or name.startswith("core files") else GOAL


def show(rows):
    print(f"{'room':26} {'lines':>13} {'branches':>13} {'functions':>13} {'goal':>5} {'marked':>6}")
    below = []
    for name, row in rows.items():
        goal = goal_of(name)
        share = percent(row["branches_taken"], row["branches"])
        cells = [f"{percent(row[a], row[b]):6.1f} {row[b]:6}" for a, b in
                 (("lines_reached", "lines"), ("branches_taken", "branches"), ("functions_called", "functions"))]
        print(f"{name:26} {cells[0]} {cells[1]} {cells[2]} {goal:5} {row['marked']:6}{'' if share >= goal else '  below'}")
        if share < goal:
            below.append(name)
    return below


def show_open(files, wanted):
    for path in sorted(files):
        if not any(path == name or path.startswith(name.rstrip("/") + "/") for name in wanted):
            continue
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        unmarked = [b for b in files[path].open_branches() if b[0] not in files[path].source.marked]
        for number in sorted({b[0] for b in unmarked}):
            which = [f"{i + 1}" for n, i, _ in unmarked if n == number]
            of = max(total for n, _, total in unmarked if n == number)
            print(f"{path}:{number}: {','.join(which)} of {of}{'' if files[path].lines[number] else ' (not reached)'}"
                  f": {lines[number - 1].strip()}")


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("build")
    parser.add_argument("--json")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("wanted", nargs="*")
    args = parser.parse_intermixed_args()
    files = read_all(args.build)
    show_open(files, args.wanted)
    rows = table(files)
    below = show(rows) if not args.wanted else []
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump({"rooms": rows, "files": {path: file.counts() for path, file in sorted(files.items())}}, out, indent=1)
    vain = [f"{path}:{line}" for path, file in sorted(files.items()) for line in file.counts()["marked_in_vain"]]
    for place in vain:
        print(f"{place}: marked uncovered, and every branch is taken")
    return 1 if vain or (args.all and below) else 0


if __name__ == "__main__":
    sys.exit(main())
