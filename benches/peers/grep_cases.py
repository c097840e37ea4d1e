#!/usr/bin/env python3
"""Compares the output of `tadoc grep` with that of ripgrep on the files of a folder, over random patterns and flags.

Claim it supports: "grep of line corpora is equal to ripgrep's output on the original files".

    python3 benches/peers/grep_cases.py [--tadoc PATH] [--rg PATH] [--cases 300] [--seed 1] [--keep-going] FOLDER

Method. The files become corpora in each layout, once a file a document and once a line a document. Patterns are words,
pairs, prefixes and alternations of the text, and some regular expressions. ripgrep gets the files in the order of the
corpus, on one thread. The outputs must be the same bytes, and the exit statuses the same numbers. The first case that
differs is printed with both outputs, and the exit status is 1. Hidden files, and files with a NUL or bytes that are
not UTF-8 are left out: an ingest skips the first, and ripgrep takes the second for binary. So are files of one empty line,
which as lines are one empty document, as an empty file is. Empty lines at the end of a file are lines in both. With -g,
-t and -T, ripgrep lists the files, and searches these in the order of the corpus. -L is --files-without-match for
ripgrep. Left out: -v -m -C, where the lines that ripgrep writes depend on memory maps,
and --crlf on corpora of lines if a file has one line or no last line end, which ripgrep writes as \\r\\n.
"""

import argparse
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

LAYOUTS = ["small", "indexed"]
TYPES = ["py", "rust", "md", "toml", "json", "c", "txt", "sh", "all"]
OVER_LINES = [r"\w+\n\w+", r"\{\n", r"\n\n", r"(?s)the.{1,40}of", r"^\s*$\n"]
FORMS = [
    ["--column"],
    ["-b"],
    ["-b", "-o"],
    ["--vimgrep"],
    ["-M", "40"],
    ["-M", "40", "--max-columns-preview"],
    ["--trim"],
    ["-r", "<$0>"],
    ["-r", "$1-${1}x$2", "-o"],
    ["--crlf"],
    ["-0"],
    ["--heading"],
    ["--heading", "-I"],
    ["--color", "always", "--column"],
    ["--color", "always", "-0"],
    ["-a", "--hidden", "--no-ignore", "-z", "-uu"],
]
ENDS = [
    [],
    [],
    [],
    ["-c"],
    ["-l"],
    ["-L"],
    ["--count-matches"],
    ["-c", "--include-zero"],
    ["-q"],
    ["-q", "-L"],
    ["-l", "-c"],
    ["-c", "-L"],
    ["-L", "-l"],
    ["-c", "-0"],
    ["-m", "2"],
    ["-m", "0"],
    ["-A", "1"],
    ["-B", "2"],
    ["-C", "3"],
    ["-m", "1", "-C", "2"],
    ["--passthru"],
]
REGEXES = [r"\d+", r"^$", r"[A-Z]\w+\s", r"\bthe\b.*of", r"(\w)$", r"^\s+\S", r"[^\x00-\x7f]", r"a{2}|e{2}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tadoc", default=shutil.which("tadoc"))
    parser.add_argument("--rg", default="rg")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep-going", action="store_true", help="print all cases that differ")
    arguments = parser.parse_args()
    arguments.differences = 0
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
            corpus = chance.choice(corpora)
            asked = without_known(corpus, texts, case(chance, words, texts))
            compare(arguments, base, corpus, sorted_paths(base), asked, number)
    print(f"{arguments.differences} differ" if arguments.differences else "all the same")


def readable_texts(folder):
    for path in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not is_hidden:
            data = path.read_bytes()
            if data not in (b"", b"\n") and b"\0" not in data:
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
    found = (path.relative_to(base / "in") for path in (base / "in").rglob("*") if path.is_file())
    return [path.as_posix() for path in sorted(found, key=lambda path: path.parts)]


def case(chance, words, texts):
    """Returns flags, flags that choose files, and patterns."""
    line = chance.choice(chance.choice(list(texts.values())).split("\n"))
    pairs = re.findall(r"\w+\W\w+", line)
    kinds = [
        re.escape(chance.choice(words)),
        re.escape(chance.choice(pairs)) if pairs else "the",
        chance.choice(words)[:3],
        "|".join(chance.sample(words, 2)),
        chance.choice(REGEXES),
    ]
    flags = [flag for flag in ["-i", "-w", "-x", "-v", "-o", "-S"] if chance.random() < 0.15]
    flags += [chance.choice(["-n", "-N"])]
    flags += chance.choice(FORMS) if chance.random() < 0.6 else []
    flags += chance.choice(ENDS)
    if chance.random() < 0.2:
        flags += ["-U"] + chance.choice([[], ["--multiline-dotall"]])
        kinds = [*kinds[:1], *OVER_LINES]
    patterns = [chance.choice(kinds).replace("\n", " ")]
    if chance.random() < 0.1:
        patterns.append(re.escape(chance.choice(words)))
    return flags, path_flags(chance, list(texts)), patterns


def without_known(corpus, texts, asked):
    """Returns what is asked without the flags that are left out."""
    flags, path_flags, patterns = asked
    # A line alone with its path is taken for a file without a line end.
    is_unfinished = any(not text.endswith("\n") or text.count("\n") == 1 for text in texts.values())
    if corpus.startswith("lines") and is_unfinished:
        flags = [flag for flag in flags if flag != "--crlf"]
    if "-v" in flags and "-m" in flags and "-C" in flags:
        flags = [flag for flag in flags if flag != "-v"]
    return flags, path_flags, patterns


def path_flags(chance, paths):
    """Returns flags that choose files, mostly none."""
    path = chance.choice(paths)
    suffix, folder = pathlib.PurePath(path).suffix, path.split("/")[0]
    globs = [f"*{suffix}", f"!*{suffix}", folder, f"{folder}/**", f"!{folder}", f"/{path}", f"!/{path}", "*/"]
    globs.append("**/[a-m]*")
    flags = []
    if chance.random() < 0.25:
        for glob in chance.sample(globs, chance.choice([1, 1, 2])):
            flags += [chance.choice(["-g", "-g", "--iglob"]), glob]
    if chance.random() < 0.15:
        for name in chance.sample(TYPES, chance.choice([1, 1, 2])):
            flags += [chance.choice(["-t", "-T"]), name]
    return flags


def chosen_paths(arguments, base, paths, flags):
    """Returns those of `paths` that ripgrep searches with these flags."""
    if not flags:
        return paths
    command = [arguments.rg, "--no-config", "--files", "-0", "--hidden", "--no-ignore", *flags]
    listed = subprocess.run(command, cwd=base / "in", stdin=subprocess.DEVNULL, capture_output=True)
    chosen = set(listed.stdout.decode().split("\0"))
    return [path for path in paths if path in chosen]


def compare(arguments, base, corpus, paths, asked, number):
    flags, path_flags, patterns = asked
    given = [part for pattern in patterns for part in ("-e", pattern)]
    command = [arguments.tadoc, "grep", *flags, *path_flags, *given, corpus]
    ours = subprocess.run(command, cwd=base, capture_output=True)
    chosen = chosen_paths(arguments, base, paths, path_flags)
    theirs = subprocess.CompletedProcess([], 1, b"", b"")
    if chosen:
        own = ["--files-without-match" if flag == "-L" else flag for flag in flags]
        command = [arguments.rg, "--no-config", "--no-heading", "-H", "-j1", *own, *given, "--", *chosen]
        theirs = subprocess.run(command, cwd=base / "in", capture_output=True)
    if (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout):
        return
    print(f"case {number} differs: {flags} {path_flags} {patterns!r} on {corpus}")
    for name, ran in [("tadoc", ours), ("rg", theirs)]:
        print(f"-- {name}, status {ran.returncode}\n{ran.stdout[:3000].decode(errors='replace')}{ran.stderr[:300].decode()}")
    if not arguments.keep_going:
        sys.exit(1)
    arguments.differences += 1


if __name__ == "__main__":
    main()
