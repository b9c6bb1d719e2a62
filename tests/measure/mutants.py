#!/usr/bin/env python3
"""Breaks a source file one line at a time, and reports the mistakes that no test notices.

Usage: mutants.py BUILD [--limit N] [--jobs N] [--json FILE] [FILE...]
Each FILE is in tests/measure/mutants, which names the test programs for it and the mistakes that change nothing. The
object is compiled with the mistake, and linked into each test in front of the libraries. A test that fails, crashes
or takes ten times as long as usual has noticed it. What no test notices is tried again in BUILD/asan, as CI runs it,
by the tests that take less than QUICK_S.
--limit N takes N mistakes of each file, evenly spread. Fails if fewer than 95 % are noticed.
"""
import argparse
import collections
import concurrent.futures
import filecmp
import json
import os
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

GOAL = 95
TABLE = "tests/measure/mutants"
ASAN = ["SAN=address,undefined", "CC=clang"]
QUICK_S = 2
MEMORY_MAX = 8 << 30 # without a sanitizer, which reserves terabytes
Mutant = collections.namedtuple("Mutant", "line last name text")  # lines line..last become text


# -- mistakes ----------------------------------------------------------------------------------------

SWAPS = [
    ("< to <=", r" < ", " <= "), ("<= to <", r" <= ", " < "),
    ("> to >=", r" > ", " >= "), (">= to >", r" >= ", " > "),
    ("== to !=", r" == ", " != "), ("!= to ==", r" != ", " == "),
    ("&& to ||", r" && ", " || "), ("|| to &&", r" \|\| ", " && "),
    ("+ to -", r" \+ ", " - "), ("- to +", r" - ", " + "),
    ("+= to -=", r" \+= ", " -= "), ("-= to +=", r" -= ", " += "),
    ("++ to --", r"\+\+", "--"), ("-- to ++", r"--", "++"),
    ("true to false", r"\btrue\b", "false"), ("false to true", r"\bfalse\b", "true"),
    ("0 to 1", r"(?<![\w.])0(?![\w.])", "1"), ("1 to 0", r"(?<![\w.])1(?![\w.])", "0"),
    ("! removed", r"!(?=[a-z(_*])", ""),
]
CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while|else if) \()(.*)(\)(?: \{| \S.*;)?)$")
STATEMENT = re.compile(r"^\s+(?!return\b|break\b|continue\b|goto\b|else\b|if\b|for\b|while\b|do\b|case\b|default\b)"
                       r"(?:\(void\))?\*?[a-zA-Z_][\w.\[\]>-]*(?:\(| [-+|&*/]?= |\+\+|--|\[)")


def balanced(text):
    return text.count("(") == text.count(")") and text.count("{") == text.count("}")


def blanked(lines):
    """The lines with comments, strings and preprocessor lines as blanks, of the same length."""
    text = "\n".join(lines)
    hide = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M)
    return hide.sub(lambda m: re.sub(r"[^\n]", "\0", m.group()), text).split("\n")


def mutants_of(lines):
    code = blanked(lines)
    result = []
    kind, inside = "", False  # the type that the function returns; in a function
    for i, line in enumerate(code):
        if line == "}" or line.startswith("};"):
            inside = False
        if line == "{":
            inside = True
        if re.match(r"[a-z]", line):
            kind = line
        if not inside or not line.strip() or re.search(r"\bassert\(", line):
            continue
        number = i + 1
        for name, pattern, becomes in SWAPS:
            for found in re.finditer(pattern, line):
                result.append(Mutant(number, number, name, lines[i][:found.start()] + becomes + lines[i][found.end():]))
        found = CONDITION.match(line)
        if found and balanced(found.group(2)) and "\0" not in found.group(2)[:1]:
            at, end = found.span(2)
            result.append(Mutant(number, number, "negated", lines[i][:at] + "!(" + lines[i][at:end] + ")" + lines[i][end:]))
        last = i
        while STATEMENT.match(line) and last < i + 6 and not code[last].rstrip(" \0").endswith((";", "{", "}")):
            last += 1
        whole = "\n".join(code[i:last + 1]).rstrip(" \0")
        if STATEMENT.match(line) and whole.endswith(";") and balanced(whole):
            result.append(Mutant(number, last + 1, "deleted", re.match(r"\s*", line).group() + ";"))
        found = re.match(r"(\s*(?:\S.* )?)return ([^\0]+);$", line)
        if found and not re.fullmatch(r"true|false|-?\d+", found.group(2)) and balanced(found.group(2)):
            value = found.group(2)
            if re.match(r"(?:static )?bool ", kind):
                result.append(Mutant(number, number, "other answer", f"{found.group(1)}return !({value});"))
            elif re.match(r"(?:static )?enum ", kind):
                other = f"((void)({value}), 0)" if not re.fullmatch(r"[A-Z]+_OK", value) else f"({value} + 1)"
                result.append(Mutant(number, number, "other answer", f"{found.group(1)}return {other};"))
    return result


# -- the table ---------------------------------------------------------------------------------------

def read_table():
    tests, same = {}, set()
    with open(TABLE, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.split(" | ")]
            if line.startswith("#") or not line.strip():
                continue
            if cells[0] == "=":  # = | file | mistake | the line | reason
                if len(cells) != 5 or not cells[4]:
                    sys.exit(f"{TABLE}: no reason: {line}")
                same.add(tuple(cells[1:4]))
            else:
                tests[cells[0]] = cells[1].split()
    return tests, same


# -- building ----------------------------------------------------------------------------------------

def command_of(build, target, touched, wanted):
    """The command that makes target after touched was changed."""
    sanitizers = ASAN if build.endswith("/asan") else []
    out = subprocess.run(["make", "-n", "V=1", "B=" + build, *sanitizers, "-W", touched, target], stdout=subprocess.PIPE,
                         check=True, text=True).stdout
    lines = [line for line in out.replace("\\\n", " ").split("\n") if f"-o {wanted} " in line + " "]
    if not lines:
        sys.exit(f"{target}: make does not say how it is built")
    return shlex.split(lines[-1].split("&&")[-1])


class Target:
    """A source file, how it is compiled, and the programs that test it."""

    def __init__(self, build, path, tests, folder):
        self.path, self.folder = path, f"{folder}/{os.path.basename(build)}"
        self.memory_max = resource.RLIM_INFINITY if build.endswith("/asan") else MEMORY_MAX
        self.environment = dict(os.environ, BUILD=build)
        os.mkdir(self.folder)
        obj = f"{build}/obj/{path[:-2]}.o"
        compile_ = command_of(build, obj, path, obj)
        self.compile = [word for word in compile_ if word not in ("-c", "-MMD", "-MP", path, "-o", obj, "-Werror", "-g")]
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        self.object = self.built(self.lines, self.folder + "/as_it_is")
        self.tests = []
        for name in tests:
            program = f"{build}/tests/{name}"
            self.tests.append([name, command_of(build, program, f"tests/{name}.c", program), program, 0.0])

    def built(self, lines, stem):
        """The object of these lines; None: they do not compile."""
        with open(stem + ".c", "w", encoding="utf-8") as out:
            out.write("\n".join(lines))
        command = [*self.compile, "-w", "-g0", "-I" + os.path.dirname(self.path), "-c", "-o", stem + ".o", "-x", "c", "-"]
        with open(stem + ".c", encoding="utf-8") as source:
            done = subprocess.run(command, stdin=source, stderr=subprocess.DEVNULL, check=False)
        return stem + ".o" if done.returncode == 0 else None

    @staticmethod
    def linked(test, object_, program):
        command = list(test[1])
        command[command.index("-o") + 1] = program
        first = next(i for i, word in enumerate(command) if word.endswith(".a"))
        command.insert(first, object_)
        subprocess.run(command, check=True)

    def measure(self):
        """How long each test takes, the fastest first. All must pass."""
        for test in self.tests:
            program = self.folder + "/as_it_is.test"
            self.linked(test, self.object, program)
            begun = time.monotonic()
            if self.noticed(program, 600):
                sys.exit(f"{test[0]} fails without a mistake")
            test[3] = time.monotonic() - begun
        self.tests.sort(key=lambda test: test[3])

    def noticed(self, program, limit_s):
        """Does the program fail? It is ended at its first failure."""
        def limits():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (self.memory_max, self.memory_max))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        end = time.monotonic() + limit_s
        with subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              preexec_fn=limits, env=self.environment) as process:
            failed, open_, tail = False, True, b""
            while open_ and not failed:
                ready, _, _ = select.select([process.stdout], [], [], max(0, min(0.5, end - time.monotonic())))
                text = os.read(process.stdout.fileno(), 65536) if ready else b""
                tail = tail[-64:] + text
                failed = b"[  FAILED  ]" in tail or b"[  ERROR   ]" in tail or time.monotonic() > end
                open_ = not ready or text != b""
                if not ready and process.poll() is not None:
                    open_ = False  # a server that it left holds the pipe open
            if failed or process.poll() is None and time.monotonic() > end:
                os.killpg(process.pid, signal.SIGKILL)
            try:
                return process.wait(max(1, end - time.monotonic())) != 0 or failed
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return True


def tried(target, mutant, number):
    """"noticed" and by which test, "survived", "same" (the same object) or "no C"."""
    stem = f"{target.folder}/{number}"
    lines = target.lines[:mutant.line - 1] + [mutant.text] + target.lines[mutant.last:]
    lines[mutant.line:mutant.line] = [""] * (mutant.last - mutant.line)  # the lines below keep their numbers
    object_ = target.built(lines, stem)
    try:
        if object_ is None:
            return "no C", ""
        if filecmp.cmp(object_, target.object, shallow=False):
            return "same", ""
        for test in target.tests:
            target.linked(test, object_, stem + ".test")
            if target.noticed(stem + ".test", max(10, 10 * test[3])):
                return "noticed", test[0]
        return "survived", ""
    finally:
        for end in (".c", ".o", ".test"):
            if os.path.exists(stem + end):
                os.unlink(stem + end)


def tried_in(targets, mutant, number):
    result = ("survived", "")
    for target in targets:
        if result[0] == "survived":
            result = tried(target, mutant, number)
    return result


def run_file(build, path, tests, same, args):
    folder = tempfile.mkdtemp(prefix="mutants-")
    try:
        target = Target(build, path, tests, folder)
        target.measure()
        quick = [test[0] for test in target.tests if test[3] < QUICK_S]
        targets = [target, Target(build + "/asan", path, quick, folder)]
        targets[1].measure()
        mutants = mutants_of(target.lines)
        if args.limit and len(mutants) > args.limit:
            mutants = [mutants[i * len(mutants) // args.limit] for i in range(args.limit)]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            results = list(pool.map(lambda pair: tried_in(targets, pair[1], pair[0]), enumerate(mutants)))
        counts = collections.Counter(result for result, _ in results)
        survivors = []
        for mutant, (result, _) in zip(mutants, results):
            was = " ".join(line.strip() for line in target.lines[mutant.line - 1:mutant.last])
            if result == "survived" and (path, mutant.name, was) in same:
                counts.subtract(["survived"])
                counts["same"] += 1
            elif result == "survived":
                survivors.append({"line": mutant.line, "mistake": mutant.name, "was": was, "is": mutant.text.strip()})
        all_ = counts["noticed"] + counts["survived"]
        print(f"{path:36} {all_:5} mistakes {counts['noticed']:5} noticed {100 * counts['noticed'] / max(1, all_):6.1f} %"
              f"  {counts['same']:3} change nothing", flush=True)
        for one in survivors:
            print(f"  {path}:{one['line']}: {one['mistake']}\n    - {one['was']}\n    + {one['is']}", flush=True)
        by = collections.Counter(test for result, test in results if result == "noticed")
        return {"mistakes": all_, "noticed": counts["noticed"], "same": counts["same"], "survivors": survivors,
                "noticed_by": by, "limit": args.limit}
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("build")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json")
    parser.add_argument("--programs", action="store_true", help="prints the test programs and builds nothing")
    parser.add_argument("files", nargs="*")
    args = parser.parse_intermixed_args()
    tests, same = read_table()
    files = args.files or list(tests)
    for path in files:
        if path not in tests:
            sys.exit(f"{path} is not in {TABLE}")
    if args.programs:
        print(*sorted({name for path in files for name in tests[path]}))
        return 0
    report = {}
    if args.json and os.path.exists(args.json):
        with open(args.json, encoding="utf-8") as file:
            report = json.load(file)
    for path in files:
        report[path] = run_file(args.build, path, tests[path], same, args)
        if args.json:
            with open(args.json, "w", encoding="utf-8") as out:
                json.dump(report, out, indent=1)
    all_ = sum(report[path]["mistakes"] for path in files)
    found = sum(report[path]["noticed"] for path in files)
    share = 100 * found / max(1, all_)
    print(f"{'all':36} {all_:5} mistakes {found:5} noticed {share:6.1f} %")
    return 0 if all_ and share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
