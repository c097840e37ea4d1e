#!/usr/bin/env python3
"""Measures statements on one core and on two workers of one core each, on this machine.

Claims it supports: "two workers take at most 1 / 1.7 of the time of one core", "workers add at most 20 ms to a statement on an
open corpus".

    python3 benches/peers/workers.py --tadoc tadoc [--cores 0,1,2] FOLDER

Method. The documents of a folder become one file of many segments. The first worker is bound to the first core, the second
to the second one, and their command `tadoc sql` to the others, or to both where there are no others. The command without
workers is bound to the first core: one worker alone would be the same, because a statement that is not divided runs in the
command. A process runs each statement --runs + 1 times. The first run opens the corpus, and the shortest of the others
counts, as the command prints it. Answers of both are compared. The overhead is that of a statement without work.
"""

import argparse
import os
import re
import subprocess
import tempfile
import urllib.request

STATEMENTS = {
    "sequence_count, 3 words": "SELECT count(*), sum(count) FROM sequence_count('{f}', 3)",
    "inverted_index": "SELECT count(*), sum(doc_count) FROM inverted_index('{f}')",
    "cooccurrence, window of 5": "SELECT count(*), sum(count) FROM cooccurrence('{f}', 5)",
    "search, frequent phrase": "SELECT count(*), sum(byte_offset) FROM search('{f}', '\"of the\"')",
    "word_count": "SELECT count(*), sum(count) FROM word_count('{f}')",
}
NO_WORK = "SELECT count(*) FROM term_count('{f}', 'xqzzyvk')"
UNITS = {"s": 1, "ms": 1e-3, "µs": 1e-6}


class Worker:
    def __init__(self, tadoc, core):
        command = ["taskset", "-c", core, *tadoc, "worker", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.url = re.search(r"http://\S+", self.process.stderr.readline()).group()
        urllib.request.urlopen(f"{self.url}/healthz").read()

    def stop(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tadoc", default="target/debug/tadoc", help="the command, with blanks between its words")
    parser.add_argument("--cores", default="0,1", help="of the first worker, the second one, the command")
    parser.add_argument("--block-size", default="32MiB", help="text of a segment")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("folder")
    arguments = parser.parse_args()
    tadoc = arguments.tadoc.split()
    first, second, *others = arguments.cores.split(",")
    here = ",".join(others or [first, second])
    with tempfile.TemporaryDirectory() as temp:
        file = os.path.join(temp, "texts.tadoc")
        options = ["--layout", "fast", "--block-size", arguments.block_size, "--quiet"]
        subprocess.run([*tadoc, "ingest", arguments.folder, "-o", file, *options], check=True)
        workers = [Worker(tadoc, core) for core in (first, second)]
        try:
            alone, coordinator = Command(tadoc, first, arguments.runs), Command(tadoc, here, arguments.runs)
            compare(alone, coordinator, [worker.url for worker in workers], file)
        finally:
            for worker in workers:
                worker.stop()


def compare(alone, coordinator, urls, file):
    print("| statement | one core, s | two workers, s | one / two |\n| --- | ---: | ---: | ---: |")
    for name, sql in STATEMENTS.items():
        sql = sql.format(f=file)
        one, of_one = alone.asked(sql, [])
        two, of_two = coordinator.asked(sql, urls)
        if one != two:
            raise SystemExit(f"answers differ: {sql}: {one}, {two}")
        print(f"| {name} | {of_one:.2f} | {of_two:.2f} | {of_one / of_two:.2f} |")
    _, of_one = alone.asked(NO_WORK.format(f=file), [])
    _, of_two = coordinator.asked(NO_WORK.format(f=file), urls)
    print(f"\nA statement without work takes {of_one * 1e3:.1f} ms alone and {of_two * 1e3:.1f} ms with two workers.")


class Command:
    def __init__(self, tadoc, cores, runs):
        self.command, self.runs = ["taskset", "-c", cores, *tadoc, "sql", "--format", "csv"], runs

    def asked(self, sql, urls):
        """Returns the rows of a statement, and the seconds of its shortest run on an open corpus."""
        command = [*self.command, *(["--workers", ",".join(urls)] if urls else [])]
        for _ in range(self.runs + 1):
            command += ["-c", sql]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        times = [float(number) * UNITS[unit] for number, unit in re.findall(r"rows?, ([\d.]+) (s|ms|µs)", done.stderr)]
        lines = done.stdout.splitlines()
        return lines[: len(lines) // (self.runs + 1)], min(times[1:])


if __name__ == "__main__":
    main()
