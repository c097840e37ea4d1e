#!/usr/bin/env python3
"""Measures statements on one core and on two workers of one core each, on this machine.

Claims it supports: "two workers take at most 1 / 1.7 of the time of one core", "workers add at most 20 ms to a statement on an
open corpus".

    python3 benches/peers/workers.py --tadoc tadoc [--cores 0,1,2] FOLDER_OR_CORPUS

Method. The documents of a folder become one file of many segments, or a file is used as it is. The first worker is bound to the first core, the second
to the second one, and their command `tadoc sql` to the others, or to both where there are no others. The command without
workers is bound to the first core: one worker alone would be the same, because a statement that is not divided runs in the
command. A process runs each statement --runs + 1 times. The first run opens the corpus, and the shortest of the others
counts, as the command prints it. Answers of both are compared. The overhead is that of a statement without work.

Processor time, of one run on average, counts beside: that of the command alone, and that of the worker that computed more
together with the command's. Other programs on the machine lengthen it less than the time. It is the time of two machines if
the command has a third core, and an upper bound of it if not.
"""

import argparse
import os
import re
import resource
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

    def computed(self):
        """Returns the processor time of the process so far, in seconds."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tadoc", default="target/debug/tadoc", help="the command, with blanks between its words")
    parser.add_argument("--cores", default="0,1", help="of the first worker, the second one, the command")
    parser.add_argument("--block-size", default="32MiB", help="text of a segment")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("texts", help="a folder of documents, or a corpus file")
    arguments = parser.parse_args()
    tadoc = arguments.tadoc.split()
    first, second, *others = arguments.cores.split(",")
    here = ",".join(others or [first, second])
    with tempfile.TemporaryDirectory() as temp:
        file = os.path.join(temp, "texts.tadoc")
        options = ["--block-size", arguments.block_size, "--quiet"]
        if os.path.isdir(arguments.texts):
            subprocess.run([*tadoc, "ingest", arguments.texts, "-o", file, *options], check=True)
        else:
            file = os.path.abspath(arguments.texts)
        workers = [Worker(tadoc, core) for core in (first, second)]
        try:
            alone, coordinator = Command(tadoc, first, arguments.runs), Command(tadoc, here, arguments.runs)
            compare(alone, coordinator, workers, file)
        finally:
            for worker in workers:
                worker.stop()


def compare(alone, coordinator, workers, file):
    print("| statement | one core, s | processor | two workers, s | processor | one / two | processor |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, sql in STATEMENTS.items():
        sql = sql.format(f=file)
        one, of_one, used_one = alone.asked(sql, [])
        two, of_two, used_two = coordinator.asked(sql, workers)
        if one != two:
            raise SystemExit(f"answers differ: {sql}: {one}, {two}")
        ratios = f"{of_one / of_two:.2f} | {used_one / used_two:.2f}"
        print(f"| {name} | {of_one:.2f} | {used_one:.2f} | {of_two:.2f} | {used_two:.2f} | {ratios} |", flush=True)
    _, of_one, _ = alone.asked(NO_WORK.format(f=file), [])
    _, of_two, _ = coordinator.asked(NO_WORK.format(f=file), workers)
    print(f"\nA statement without work takes {of_one * 1e3:.1f} ms alone and {of_two * 1e3:.1f} ms with two workers.")


class Command:
    def __init__(self, tadoc, cores, runs):
        self.command, self.runs = ["taskset", "-c", cores, *tadoc, "sql", "--format", "csv"], runs

    def asked(self, sql, workers):
        """Returns the rows of a statement, the seconds of its shortest run on an open corpus, and the mean processor time."""
        _, _, opening = self.run(sql, 1, workers)
        lines, times, used = self.run(sql, self.runs + 1, workers)
        # The workers have opened the corpus before.
        runs = self.runs + 1 if workers else self.runs
        return lines[: len(lines) // (self.runs + 1)], min(times[1:]), (used if workers else used - opening) / runs

    def run(self, sql, times, workers):
        """Returns the lines of a statement, the seconds of each run, and the processor time of all."""
        command = [*self.command, *(["--workers", ",".join(worker.url for worker in workers)] if workers else [])]
        before = [worker.computed() for worker in workers]
        used = processor_time()
        command += ["-c", sql] * times
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        used = processor_time() - used
        used += max((worker.computed() - start for worker, start in zip(workers, before)), default=0)
        seconds = [float(number) * UNITS[unit] for number, unit in re.findall(r"rows?, ([\d.]+) (s|ms|µs)", done.stderr)]
        return done.stdout.splitlines(), seconds, used


def processor_time():
    """Returns the processor time of the processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
