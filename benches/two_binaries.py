#!/usr/bin/env python3
r"""Compares two binaries of `tadoc`: size of the file, time of an ingest, times of warm statements.

Claim it supports: a change made nothing slower and no file larger.

    python3 benches/two_binaries.py --before target/before/tadoc --after target/release/tadoc \
        --corpora ../shared/corpora/d-logs ../shared/corpora/f-dbtext

Method. Each folder is ingested by both binaries in turn, which of them is first changes. Each statement runs in one
process of each binary in turn, so often as --repeats says, on the file of its own binary; the processes run --rounds
times. The figure is the ratio of the least times, after to before, and that of the medians. A statement whose rows differ
is named, and the exit status is 1.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time

# `{c}` is the corpus.
STATEMENTS = [
    "SELECT count(*), sum(count) FROM word_count('{c}')",
    "SELECT count(*), sum(length(word)) FROM inverted_index('{c}')",
    "SELECT count(*) FROM search('{c}', 'error or the')",
    "SELECT count(*), sum(doc_id) FROM search('{c}', '\"in the\"')",
    "SELECT count(*) FROM kwic('{c}', 'the')",
    "SELECT count(*), sum(count) FROM sequence_count('{c}', 2)",
    "SELECT count(*) FROM term_vector('{c}')",
    "SELECT sum(length(text)) FROM documents('{c}')",
    "SELECT count(*), sum(bytes) FROM documents('{c}') WHERE text LIKE '%the%'",
    "SELECT count(*) FROM grep('{c}', 'th[aei]')",
    "SELECT max(length(upper(concat(word, doc_id)))) FROM term_vector('{c}')",
    "SELECT word, count(*) FROM term_vector('{c}') GROUP BY word ORDER BY 2 DESC, 1 LIMIT 10",
]
TIME = re.compile(r"rows?, ([0-9.]+) (ms|s|µs)")
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


def run(command):
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done, time.perf_counter() - started


def ingest_s(binary, folder, out):
    if os.path.exists(out):
        os.remove(out)
    return run([binary, "ingest", folder, "-o", out, "--quiet"])[1]


def statement_times_s(binary, sql, repeats):
    done, _ = run([binary, "sql", "--format", "csv", *["-c", sql] * repeats])
    times = [float(number) * UNITS[unit] for number, unit in TIME.findall(done.stderr)]
    assert len(times) == repeats, done.stderr
    # The first run opens the corpus.
    return done.stdout, times[1:]


def show(name, before, after):
    ratios = min(after) / min(before), statistics.median(after) / statistics.median(before)
    print(f"{ratios[0]:6.3f} {ratios[1]:6.3f} {len(before):5d}  {name}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--corpora", nargs="+", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", default=".")
    arguments = parser.parse_args()
    binaries = {"before": arguments.before, "after": arguments.after}
    files = {name: os.path.join(arguments.out, f"{name}.tadoc") for name in binaries}
    rows_differ = False
    print(" least median times  of")
    for folder in arguments.corpora:
        times = {name: [] for name in binaries}
        for at in range(arguments.rounds):
            for name in sorted(binaries, reverse=at % 2 == 0):
                times[name].append(ingest_s(binaries[name], folder, files[name]))
        show(f"ingest {folder}", times["before"], times["after"])
        sizes = {name: os.path.getsize(file) for name, file in files.items()}
        print(f"{sizes['after'] / sizes['before']:6.3f}               bytes of the file of {folder}")
        for statement in STATEMENTS:
            times = {name: [] for name in binaries}
            rows = {}
            for at in range(arguments.rounds):
                for name in sorted(binaries, reverse=at % 2 == 0):
                    sql = statement.replace("{c}", files[name])
                    rows[name], more = statement_times_s(binaries[name], sql, arguments.repeats)
                    times[name] += more
            show(statement, times["before"], times["after"])
            if rows["before"] != rows["after"]:
                rows_differ = True
                print(f"       rows differ: {statement}")
    return int(rows_differ)


if __name__ == "__main__":
    sys.exit(main())
