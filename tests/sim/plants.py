#!/usr/bin/env python3
"""Plants mistakes (tests/sim/plants), one at a time, in a copy of the tree, and counts the seeds
until the simulation finds each. Found: a run breaks a promise, and the same seed breaks none
without the mistake. A run that took too long (signal 14) counts as nothing.

  tests/sim/plants.py [NAME...]          all of them, or these; exits with 1 if one is not found
  tests/sim/plants.py --note [NAME...]   the same, and writes what came out into tests/sim/plants
  tests/sim/plants.py --noted [NAME...]  tries the noted seeds only, 1 to 2 s each
  tests/sim/plants.py --counts           how many are noted as found, sought in vain, not measured
  tests/sim/plants.py --check            only sees whether each still applies

The seed that is noted with a plant is tried first.

Environment: B (build), SEEDS and SECONDS_MAX at most for each (2000, 900). The sum is in
B/plants.json."""
import fcntl
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("B", "build")
PARTS = ("app", "db", "lockkit", "tests", "Makefile", ".layers")


def read_plants():
    """{name: (words, only, [(file, old, new)])}, {name: (seed, what broke)}; None: nothing, up to that seed"""
    plants, notes, name, file = {}, {}, None, None
    for line in open(os.path.join(HERE, "plants")).read().splitlines():
        if line.startswith("#") or not line:
            continue
        if line[0] == "=":
            seed, what = line[1:].split(" ", 1)
            notes[name] = (int(seed), None if what == "not found" else what)
        elif line[0] == "-":
            edits = plants[name][2]
            if edits and edits[-1][0] == file and not edits[-1][2]:
                edits[-1][1].append(line[1:])
            else:
                edits.append((file, [line[1:]], []))
        elif line[0] == "+":
            plants[name][2][-1][2].append(line[1:])
        elif line[0] == " ":
            file = line[1:]
        else:
            name, words = line.split(": ", 1)
            name, _, only = name.partition(" ")
            if name in plants:
                sys.exit(f"plants: {name} is there twice")
            plants[name] = (words, only, [])
    return {name: (words, only, [(file, "\n".join(old), "\n".join(new)) for file, old, new in edits])
            for name, (words, only, edits) in plants.items()}, notes


def write_notes(notes):
    path, lines = os.path.join(HERE, "plants"), []
    for line in open(path).read().splitlines():
        if line.startswith("="):
            continue
        lines.append(line)
        name = re.match("([a-z0-9-]+)( [^:]*)?: ", line)
        if name and name[1] in notes:
            seed, what = notes[name[1]]
            lines.append(f"={seed} {what or 'not found'}")
    with open(path, "w") as out:
        out.write("\n".join(lines) + "\n")


def in_short(what):
    return re.split("[:({]", what)[0].strip()[:90]


def planted(name, edits):
    """{file: its text with the mistake}; ends the program if it does not apply."""
    texts = {}
    for file, old, new in edits:
        text = texts.get(file) or open(os.path.join(TOP, file)).read()
        if text.count(old) != 1:
            sys.exit(f"plants: {name}: stands {text.count(old)} times in {file}, must be once:\n{old}")
        texts[file] = text.replace(old, new)
    if not texts:
        sys.exit(f"plants: {name} changes nothing")
    return texts


def files_of(top):
    """The sources below it, as {path: where}."""
    found = {}
    for part in PARTS:
        path = os.path.join(top, part)
        for folder, _, names in os.walk(path):
            found.update((os.path.relpath(os.path.join(folder, name), top), os.path.join(folder, name))
                         for name in names)
        if os.path.isfile(path):
            found[part] = path
    return found


def copy_tree(tree):
    """Equal to ours, whatever a run that was killed has left there."""
    if os.path.isdir(f"{TOP}/build/obj") and not os.path.isdir(f"{tree}/build"):  # what is built already
        os.makedirs(f"{tree}/build")
        subprocess.run(f"cp -a build/obj build/*.a {tree}/build/", shell=True, cwd=TOP, check=True)
        subprocess.run(["cp", "-a", "-t", tree, *PARTS], cwd=TOP, check=True)
    ours, theirs = files_of(TOP), files_of(tree)
    for path in theirs.keys() - ours.keys():
        os.remove(theirs[path])
    for path, file in ours.items():
        copy = os.path.join(tree, path)
        if path in theirs and filecmp.cmp(file, copy, shallow=False):
            continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(file, copy)  # newer than what was built from another one


def build(tree, name, texts):
    """The program with the mistake: its path."""
    for file, text in texts.items():
        with open(f"{tree}/{file}", "w") as out:
            out.write(text)
    made = subprocess.run(["make", "-s", "B=build", "build/tests/sim/test_sim"], cwd=tree)
    program = f"{os.path.dirname(tree)}/{name}"
    if made.returncode == 0:
        shutil.copy2(f"{tree}/build/tests/sim/test_sim", program)
    for file in texts:
        shutil.copy2(f"{TOP}/{file}", f"{tree}/{file}")
        os.utime(f"{tree}/{file}")
    if made.returncode != 0:
        sys.exit(f"plants: {name} does not build")
    return program


def own_environment(**more):
    """Without what asks for other seeds than ours."""
    ours = {name: value for name, value in os.environ.items()
            if name not in ("TEST_SEED", "TEST_LESS", "TEST_FULL") and not name.startswith("SIM_")}
    return dict(ours, SIM_SHRINK_S="0", **more)


def breaks_nothing(program, seed):
    return subprocess.run([program], env=own_environment(TEST_SEED=str(seed)), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def try_seeds(program, plain, only, next_seed, last):
    """(the seed, what broke), or (the last seed, None)"""
    until = time.monotonic() + float(os.environ.get("SECONDS_MAX", "900"))
    while next_seed <= last and time.monotonic() < until:
        env = own_environment(SIM_FROM=str(next_seed), SIM_SEEDS=str(last + 1 - next_seed), SIM_UNTIL_BROKEN="1",
                              SIM_SECONDS=str(int(until - time.monotonic()) + 1))
        if only:
            env["SIM_ONLY"] = only
        out = subprocess.run([program], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True, errors="replace").stdout
        broken = sorted((int(n), what) for n, what in re.findall(r"^seed (\d+): (.*)", out, re.M))
        found = [(n, what) for n, what in broken if not what.startswith("ended by signal 14 ")]
        if found:
            if not breaks_nothing(plain, found[0][0]):
                sys.exit(f"plants: seed {found[0][0]} breaks a promise without a mistake, too")
            return found[0]
        begun = int(re.search(r'"last": (\d+),', out).group(1))
        if not broken:
            return begun, None
        next_seed = begun + 1
    return next_seed - 1, None


def seek(program, plain, only, noted, noted_only):
    """(the seed, what broke), or (the last seed, None): the noted seed first."""
    if noted and noted[1]:
        found = try_seeds(program, plain, None, noted[0], noted[0])
        if found[1] or noted_only:
            return found
    return try_seeds(program, plain, only, 1, int(os.environ.get("SEEDS", "2000")))


def main():
    plants, notes = read_plants()
    texts = {name: planted(name, edits) for name, (_, _, edits) in plants.items()}
    if sys.argv[1:] == ["--check"]:
        print(f"{len(plants)} mistakes can be planted")
        return 0
    if sys.argv[1:] == ["--counts"]:
        found = sum(what is not None for _, what in notes.values())
        print(f"{len(plants)} mistakes: {found} found, {len(notes) - found} sought and not found, "
              f"{len(plants) - len(notes)} not measured")
        return 0
    options, names = [a for a in sys.argv[1:] if a[0] == "-"], [a for a in sys.argv[1:] if a[0] != "-"]
    if set(options) - {"--note", "--noted"}:
        sys.exit(__doc__)
    names = names or [name for name in plants if "--noted" not in options or notes.get(name, (0, None))[1]]
    folder = os.path.join(TOP, BUILD, "plants")
    os.makedirs(folder, exist_ok=True)
    alone = open(f"{folder}/lock", "w")
    fcntl.flock(alone, fcntl.LOCK_EX)  # two would plant in one tree
    copy_tree(f"{folder}/tree")
    try:
        told = json.load(open(f"{folder}.json"))
    except FileNotFoundError:
        told = {}
    plain = build(f"{folder}/tree", "plain", {})
    missed = 0
    for name in names:
        if name not in plants:
            sys.exit(f"plants: there is no {name}")
        seeds, what = seek(build(f"{folder}/tree", name, texts[name]), plain, plants[name][1],
                           notes.get(name), "--noted" in options)
        missed += what is None
        told[name] = {"words": plants[name][0], "seeds": seeds, "found": what}
        print(f"| `{name}` | {plants[name][0]} | {seeds} | {in_short(what) if what else 'not found'} |",
              flush=True)
        if "--note" in options:
            notes[name] = (seeds, what and in_short(what))
            write_notes(notes)
        with open(f"{folder}.json", "w") as out:
            json.dump(told, out, indent=1)
        os.remove(f"{folder}/{name}")
    os.remove(plain)
    return missed > 0


sys.exit(main())
