#!/usr/bin/env python3
"""Compares the output of `tadoc grep` with that of ripgrep on the files of a folder, over random patterns and flags.

Claim it supports: "grep of line corpora is equal to ripgrep's output on the original files".

    python3 benches/peers/grep_cases.py [--tadoc PATH] [--rg PATH] [--cases 300] [--seed 1] FOLDER

Method. The files become corpora in each layout, once a file a document and once a line a document. Patterns are words,
pairs, prefixes and alternations of the text, and some regular expressions. ripgrep gets the files in the order of the
corpus, on one thread. The outputs must be the same bytes, and the exit statuses the same numbers. The first case that
differs is printed with both outputs, and the exit status is 1. Files with a NUL, a carriage return or bytes that are not
UTF-8 are left out: ripgrep takes the first for binary. Empty lines at the end of a file are lines in both.
"""

import argparse
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

LAYOUTS = ["small", "fast", "indexed"]
REGEXES = [r"\d+", r"^$", r"[A-Z]\w+\s", r"\bthe\b.*of", r"(\w)$", r"^\s+\S", r"[^\x00-\x7f]", r"a{2}|e{2}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tadoc", default=shutil.which("tadoc"))
    parser.add_argument("--rg", default="rg")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    texts = dict(readable_texts(arguments.folder))
    words = sorted(set(re.findall(r"\w+", " ".join(texts.values()))))
    print(f"{len(texts)} files, {sum(map(len, texts.values())) / 1e6:.1f} MB, {arguments.cases} cases")
    with tempfile.TemporaryDirectory() as temp:
        base = pathlib.Path(temp)
        for path, text in texts.items():
            (base / "in" / path).parent.mkdir(parents=True, exist_ok=True)
            (base / "in" / path).write_text(text, newline="")
        corpora = list(write_corpora(arguments.tadoc, base))
        for number in range(arguments.cases):
            compare(arguments, base, chance.choice(corpora), sorted_paths(base), case(chance, words, texts), number)
    print("all the same")


def readable_texts(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if data and b"\0" not in data and b"\r" not in data:
                try:
                    yield path.relative_to(folder).as_posix(), data.decode()
                except UnicodeDecodeError:
                    pass


def write_corpora(tadoc, base):
    for layout in LAYOUTS:
        for documents in ["files", "lines"]:
            name = f"{documents}-{layout}.tadoc"
            command = [tadoc, "ingest", "-q", "--documents", documents, "--layout", layout, "in", "-o", name]
            subprocess.run(command, cwd=base, check=True)
            yield name


def sorted_paths(base):
    return sorted(path.relative_to(base / "in").as_posix() for path in (base / "in").rglob("*") if path.is_file())


def case(chance, words, texts):
    """Returns flags and a pattern."""
    line = chance.choice(chance.choice(list(texts.values())).split("\n"))
    pairs = re.findall(r"\w+\W\w+", line)
    kinds = [
        re.escape(chance.choice(words)),
        re.escape(chance.choice(pairs)) if pairs else "the",
        chance.choice(words)[:3],
        "|".join(chance.sample(words, 2)),
        chance.choice(REGEXES),
    ]
    flags = [flag for flag in ["-i", "-w", "-v", "-o"] if chance.random() < 0.2]
    flags += [chance.choice(["-n", "-N"])]
    flags += chance.choice([[], [], ["-c"], ["-l"], ["-m", "2"], ["-A", "1"], ["-B", "2"], ["-C", "3"]])
    return flags, chance.choice(kinds).replace("\n", " ")


def compare(arguments, base, corpus, paths, flags_and_pattern, number):
    flags, pattern = flags_and_pattern
    ours = subprocess.run([arguments.tadoc, "grep", *flags, "-e", pattern, corpus], cwd=base, capture_output=True)
    command = [arguments.rg, "--no-config", "--no-heading", "-H", "-j1", *flags, "-e", pattern, "--", *paths]
    theirs = subprocess.run(command, cwd=base / "in", capture_output=True)
    if (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout):
        return
    print(f"case {number} differs: {flags} {pattern!r} on {corpus}")
    for name, ran in [("tadoc", ours), ("rg", theirs)]:
        print(f"-- {name}, status {ran.returncode}\n{ran.stdout[:3000].decode(errors='replace')}{ran.stderr[:300].decode()}")
    sys.exit(1)


if __name__ == "__main__":
    main()
