#!/usr/bin/env python3
"""Measures `tadoc.device = auto` on repeated statements, beside `cpu` and `gpu`.

Claim it supports: "without `tadoc calibrate`, a repeated statement of a session takes at most 1.2x the better of `cpu` and
`gpu` from the fifth on, for GSST scans, sequences, pairs and ranked indexes of 250 MB and more; a short process never waits
for a device". Before the fifth run the cores and a device are timed.

    python3 benches/peers/placement.py --tadoc target/debug/tadoc [--rows 30000000] [--text-mb 250] [FOLDER]

Method. The script makes `l_comment` as dbgen does (slices of 10 to 43 bytes of a pool of sentences) and writes it STORED AS
GSST. It makes three corpora (a log, versions of a text, prose). Each statement runs --runs times in a session of its own for
`cpu`, `gpu` and `auto`, and is then explained. Answers are compared. The ratio is the slowest run of `auto` from the fifth on,
over the better of the medians of `cpu` and `gpu` from the fifth on. At the end come whole processes that end while a device
may be opened. Nothing is calibrated: configuration and caches lie in folders of their own. Files are kept in FOLDER for the
next time. Needs only Python and tadoc. Without a device the columns of `gpu` are empty.
"""

import argparse
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

ADVERBS = "quickly slowly carefully blithely furiously slyly quietly ruthlessly daringly finally".split()
ADJECTIVES = "special pending unusual express final regular bold even silent ironic".split()
NOUNS = "packages requests accounts deposits foxes ideas theodolites instructions dependencies excuses platelets asymptotes".split()
VERBS = "sleep wake cajole nag haggle boost detect integrate engage use affix solve are serve".split()
PLACES = "about above according_to across after against along among around at before between".split()

SCANS = [
    ("GSST LIKE, rare", "SELECT count(*) FROM t WHERE l_comment LIKE '%special packages wake%'"),
    ("GSST LIKE, 1 %", "SELECT count(*) FROM t WHERE l_comment LIKE '%final dep%'"),
    ("GSST LIKE, text", "SELECT sum(octet_length(l_comment)) FROM t WHERE l_comment LIKE '%final dep%'"),
    ("GSST, all rows", "EXPLAIN ANALYZE SELECT l_comment FROM t"),
]
TASKS = [
    ("sequence_count", "SELECT count(*), sum(octet_length(sequence)), sum(count) FROM sequence_count('{}', 3)"),
    ("cooccurrence", "SELECT count(*), sum(octet_length(word1)), sum(octet_length(word2)), sum(count) FROM cooccurrence('{}')"),
    ("ranked_inverted_index",
     "SELECT count(*), sum(octet_length(sequence)), sum(doc_id), sum(count), sum(rank) FROM ranked_inverted_index('{}', 3)"),
]


def sentence(rng):
    noun = f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}"
    end = rng.choice([f"{rng.choice(PLACES)} the {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}", rng.choice(ADVERBS)])
    return f"{noun} {rng.choice(VERBS)} {end}{rng.choice('.,;:?!-')} ".replace("_", " ")


def comments(path, num_rows):
    """Writes a CSV file of slices of a pool, as dbgen cuts l_comment."""
    rng = random.Random(1)
    pool = "".join(sentence(rng) for _ in range(100_000))
    with open(path, "w", encoding="ascii") as file:
        file.write("l_comment\n")
        for _ in range(num_rows):
            at = rng.randrange(len(pool) - 43)
            file.write('"' + pool[at:at + rng.randrange(10, 44)] + '"\n')


def log_document(rng, at):
    hosts = [f"node-{i:03}" for i in range(40)]
    lines = []
    for line in range(700):
        lines.append(f"2026-11-{at % 28 + 1:02} {line // 60 % 24:02}:{line % 60:02}:07 {rng.choice(hosts)} kernel: "
                     f"{rng.choice(NOUNS)} {rng.choice(VERBS)} {rng.choice(ADVERBS)} in {rng.randrange(5000)} us")
    return "\n".join(lines)


def write_documents(folder, kind, len_bytes):
    """Writes files of some 64 KiB each, of `len_bytes` together."""
    rng = random.Random(2)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randrange(2, 10))) for _ in range(30_000)]
    weights = [1 / (i + 3) for i in range(len(words))]
    total = [0.0]
    for weight in weights:
        total.append(total[-1] + weight)
    version = rng.choices(words, cum_weights=total[1:], k=11_000)
    folder.mkdir()
    written, at = 0, 0
    while written < len_bytes:
        if kind == "log":
            text = log_document(rng, at)
        elif kind == "versioned":
            for _ in range(15):
                version[rng.randrange(len(version))] = rng.choice(words)
            text = " ".join(version)
        else:
            text = " ".join(rng.choices(words, cum_weights=total[1:], k=11_000))
        (folder / f"{at:05}.txt").write_text(text, encoding="ascii")
        written, at = written + len(text), at + 1


class Tadoc:
    """The binary, with its own configuration and caches."""

    def __init__(self, binary, home):
        self.binary = binary
        of_home = {name: f"{home}/{name}" for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
        self.environment = {**os.environ, **of_home}
        self.environment.pop("TADOC_CALIBRATION", None)

    def run(self, *arguments):
        begin = time.perf_counter()
        done = subprocess.run([self.binary, *arguments], capture_output=True, text=True, env=self.environment, check=False)
        if done.returncode != 0:
            raise RuntimeError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
        return done, time.perf_counter() - begin

    def session(self, before, statement, num_runs):
        """Returns the seconds and the answer of each run, and the place of the plan after them."""
        explained = statement if statement.startswith("EXPLAIN") else f"EXPLAIN {statement}"
        done, _ = self.run("sql", "--format", "csv", "-c", ";".join([*before, *[statement] * num_runs, explained]))
        times = re.findall(r"rows?, (?:[\d,]+ shown[^,]*, )?([\d.]+) (us|µs|ms|s|min)\b", done.stderr)
        units = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
        seconds = [float(number) * units[unit] for number, unit in times][-num_runs - 1:-1]
        places = re.findall(r"(?<!_)device=(.*?)(?:, traversal=|, metrics=|\"|$)", done.stdout, re.MULTILINE)
        answers = [line for line in done.stdout.splitlines() if re.fullmatch(r"[\d,]+", line)]
        return seconds, answers, places[-1] if places else ""


def compare(tadoc, name, before, statement, num_runs):
    """Prints the runs of a statement on each device, and the choice of `auto`."""
    found, answers = {}, {}
    for device in ("cpu", "gpu", "auto"):
        setting = f"SET tadoc.device = '{device}'"
        try:
            found[device], answers[device], place = tadoc.session([setting, *before], statement, num_runs)
        except RuntimeError as error:
            print(f"{device}: {str(error)[:150]}", file=sys.stderr)
    shown = {device: " ".join(f"{1000 * run:.0f}" for run in runs) for device, runs in found.items()}
    best = min(statistics.median(found[device][4:]) for device in ("cpu", "gpu") if device in found)
    ratio = max(found["auto"][4:]) / best
    same = len(set(map(tuple, answers.values()))) == 1
    print(f"| {name} | {shown['cpu']} | {shown.get('gpu', '')} | {shown['auto']} | {1000 * best:.0f} | {ratio:.2f} | "
          f"{'equal' if same else 'DIFFERENT'} | {place[:150]} |", flush=True)


def compare_processes(tadoc, table):
    """Prints the times of whole processes: one statement, and scripts that end while a device may be opened."""
    like = SCANS[1][1]
    scripts = [
        ("one statement", [table, like]),
        ("a scan, and a short statement", [table, like, "SELECT 1"]),
        ("a short statement", ["SELECT 1"]),
    ]
    print("\n| process | cpu, ms | auto, ms |\n| --- | --- | --- |")
    for name, statements in scripts:
        cells = []
        for device in ("cpu", "auto"):
            script = ";".join([f"SET tadoc.device = '{device}'", *statements])
            cells.append(" ".join(f"{1000 * tadoc.run('sql', '-c', script)[1]:.0f}" for _ in range(5)))
        print(f"| {name} | {cells[0]} | {cells[1]} |", flush=True)


def made(tadoc, folder, arguments):
    """Returns the GSST table and the corpora, and makes them if they do not exist."""
    gsst = folder / f"gsst-{arguments.rows}"
    if not gsst.exists():
        num_lines = min(arguments.rows, 1_000_000)
        comments(folder / "comments.csv", num_lines)
        source = f"CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{folder}/comments.csv' OPTIONS ('format.has_header' 'true')"
        rows = f"SELECT l_comment FROM c CROSS JOIN generate_series(1, {arguments.rows // num_lines})"
        tadoc.run("sql", "-c", f"{source}; COPY ({rows}) TO '{gsst}/' STORED AS GSST")
    corpora = []
    for kind in ("log", "versioned", "prose"):
        corpus = folder / f"{kind}-{arguments.text_mb}.tadoc"
        if not corpus.exists():
            with tempfile.TemporaryDirectory(dir=folder) as texts:
                write_documents(pathlib.Path(texts) / kind, kind, arguments.text_mb * 1_000_000)
                tadoc.run("ingest", f"{texts}/{kind}", "-o", str(corpus))
        corpora.append((kind, corpus))
    return gsst, corpora


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tadoc", default="target/debug/tadoc")
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--text-mb", type=int, default=250)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("folder", nargs="?", help="where data is kept (default: a temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        folder = pathlib.Path(arguments.folder or f"{home}/data")
        folder.mkdir(parents=True, exist_ok=True)
        tadoc = Tadoc(arguments.tadoc, home)
        gsst, corpora = made(tadoc, folder, arguments)
        table = f"CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{gsst}/'"
        print("| statement | cpu, ms | gpu, ms | auto, ms | best from the fifth on | auto : best | answers | auto's last plan |")
        print("| --- | --- | --- | --- | ---: | ---: | --- | --- |")
        for name, statement in SCANS:
            compare(tadoc, name, [table], statement, arguments.runs)
        for kind, corpus in corpora:
            for name, statement in TASKS:
                compare(tadoc, f"{kind}, {name}", [], statement.format(corpus), arguments.runs)
        compare_processes(tadoc, table)


if __name__ == "__main__":
    main()
