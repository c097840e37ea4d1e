#!/usr/bin/env python3
"""Measures the rate of `tadoc ingest`, its memory and its files, beside Tantivy on the same documents.

Claim it supports: "ingest at the rate of Tantivy with stored text and two threads, or faster". Several binaries
of ours can be named, to compare the code before and after a change in one run.

    pip install tantivy
    python3 benches/peers/ingest.py --tadoc now=target/debug/tadoc --tadoc before=/tmp/old/tadoc FOLDER ...

Each packer is a process of its own. The packers take turns, and the shortest of `--rounds` times counts.
Prints Markdown with a row for each corpus and packer: time, MB/s of raw text, its ratio to the rate of Tantivy,
processor time (user and system, the median of the rounds) and its ratio to that of Tantivy, bytes of the output and
their share of the raw bytes, and the greatest resident memory. Tantivy is called from Python, whose own time is
included. On a machine with other work only processor times can be compared. `--cores 0,1` binds all packers to these
cores.
"""

import argparse
import os
import shutil
import sys
import tempfile
from statistics import median

from documents import read_documents, stage
from opening import measured
from sizes import folder_len


def ingest(binary, options, staged, out):
    """Packs the documents by one of our binaries and returns (seconds, peak MB, bytes on disk, processor seconds)."""
    _, seconds, processor, peak_mb = measured([binary, "ingest", staged, "-o", out, "--force", *options])
    return seconds, peak_mb, os.path.getsize(out), processor


def tantivy(folder, temp):
    """Indexes the documents by Tantivy and returns (seconds, peak MB, bytes on disk, processor seconds)."""
    out = os.path.join(temp, "tantivy")
    shutil.rmtree(out, ignore_errors=True)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import sizes; sizes.tantivy_index(*sys.argv[2:])"
    _, seconds, processor, peak_mb = measured([sys.executable, "-c", code, os.path.dirname(__file__), folder, temp])
    return seconds, peak_mb, folder_len(out), processor


def measure(packers, rounds):
    """Returns {packer: (seconds, peak MB, bytes on disk, processor seconds)} of the fastest round of each, with the
    median of the processor seconds."""
    turns = [[pack() for pack in packers.values()] for _ in range(rounds)]
    by_packer = zip(packers, zip(*turns))
    return {name: (*min(results)[:3], median(result[3] for result in results)) for name, results in by_packer}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="FOLDER")
    parser.add_argument("--tadoc", action="append", metavar="NAME=BINARY", help="default: tadoc=target/debug/tadoc")
    parser.add_argument("--options", default="", help="further options of `tadoc ingest`, as one text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", help="cores of all packers, such as 0,1")
    parser.add_argument("--no-tantivy", action="store_true")
    arguments = parser.parse_args()
    if arguments.cores:
        os.sched_setaffinity(0, map(int, arguments.cores.split(",")))
    binaries = dict(text.split("=", 1) for text in arguments.tadoc or ["tadoc=target/debug/tadoc"])
    print("| corpus | packer | s | MB/s | rate / Tantivy | processor s | / Tantivy | bytes | share | peak MB |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for folder in arguments.corpora:
        with tempfile.TemporaryDirectory() as temp:
            raw = sum(len(data) for _, data in read_documents(folder))
            staged, out = stage(folder, temp), os.path.join(temp, "corpus.tadoc")
            packers = {
                name: lambda binary=binary: ingest(binary, arguments.options.split(), staged, out)
                for name, binary in binaries.items()
            }
            if not arguments.no_tantivy:
                packers["Tantivy"] = lambda: tantivy(folder, temp)
            best = measure(packers, arguments.rounds)
            peer, _, _, peer_processor = best.get("Tantivy", (None,) * 4)
            for name, (seconds, peak_mb, num_bytes, processor) in best.items():
                ratio = f"{peer / seconds:.2f}" if peer else ""
                of_peer = f"{processor / peer_processor:.2f}" if peer else ""
                shown, rate = os.path.basename(folder.rstrip("/")), raw / seconds / 1e6
                print(f"| {shown} | {name} | {seconds:.2f} | {rate:.1f} | {ratio} | {processor:.2f} | {of_peer} | {num_bytes:,} "
                      f"| {num_bytes / raw:.4f} | {peak_mb:.0f} |")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
