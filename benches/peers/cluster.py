#!/usr/bin/env python3
"""Estimates a statement over ten terabytes on 100 workers, from measured growth and measured costs.

Claim it supports: the table "Ten terabytes on paper" in benches/results. Nothing here is a measurement of a cluster.

    python3 benches/peers/cluster.py --tadoc target/debug/tadoc [--text-tb 10] [--workers 100] [--cores 16] FOLDER

Method. The documents of a folder, long ones cut at line ends, are put in a random order (fixed seed). An eighth, a
quarter, a half and all of them are ingested. Elements of grammars, words of dictionaries and bytes of the file come
from `tadoc info`, and the numbers of different words, pairs and sequences from SQL. Each number n of a text of t bytes is
fitted as n = a * t^b to the last two steps, so growth that slows down is not taken for granted. Counts of one segment
grow with the number of segments (b = 1).

The costs of an element, a word, a row and a byte are options, with the values of benches/results/2026-11-30-h200.md and of
src/datafusion/planning/portions/division.rs: decoding and walking an element, decoding a word, packing and merging a row.
A stage lasts as long as its slowest worker, whose share is 1.0625 of an equal one. Rows and words that are merged are
those that each worker has of its own text: a worker of t / W bytes has a * (t / W)^b of them. Stages do not overlap here,
so the sum is an upper bound.
"""

import argparse
import math
import os
import random
import re
import subprocess
import tempfile

from documents import read_documents

PIECE_BYTES = 256 << 10
STEPS = (8, 4, 2, 1)
COUNTS = {
    "words": "SELECT count(*) FROM word_count('{f}')",
    "pairs": "SELECT count(*) FROM cooccurrence('{f}', 5)",
    "sequences": "SELECT count(*) FROM sequence_count('{f}', 3)",
}
LARGEST_SHARE = 1.0625
GB = 1e9


def pieces(folder):
    """Returns the texts of a folder in random order; long ones are cut at line ends."""
    cut = []
    for _, data in read_documents(folder):
        start = 0
        while start < len(data):
            end = len(data) if len(data) - start <= PIECE_BYTES else data.rfind(b"\n", start, start + PIECE_BYTES) + 1
            end = end if end > start else min(start + PIECE_BYTES, len(data))
            cut.append(data[start:end])
            start = end
    random.Random(1).shuffle(cut)
    return cut


def number(info, name):
    """Returns the number in the line `name` of `tadoc info`."""
    line = re.search(rf"^{name} .*$", info, re.MULTILINE).group()
    exact = re.search(r"\(([\d,]+) bytes\)", line) or re.search(r"([\d,]+)(?: bytes)?(?:,|$)", line)
    return int(exact.group(1).replace(",", ""))


def measured(binary, texts, block_size):
    """Ingests `texts` and returns the numbers of the corpus by name."""
    with tempfile.TemporaryDirectory() as folder:
        documents, corpus = os.path.join(folder, "documents"), os.path.join(folder, "c.tadoc")
        os.mkdir(documents)
        for i, text in enumerate(texts):
            with open(os.path.join(documents, f"{i:08}.txt"), "wb") as out:
                out.write(text)
        subprocess.run([binary, "ingest", documents, "-o", corpus, "--quiet", "--block-size", block_size], check=True)
        info = subprocess.run([binary, "info", corpus], check=True, capture_output=True, text=True).stdout
        found = {"bytes": number(info, "text bytes"), "file": number(info, "file bytes"),
                 "elements": number(info, "elements g"), "segments": number(info, "segments")}
        in_dictionaries = re.findall(r"([\d,]+) words in the dictionary", info)
        found["dictionary words"] = sum(int(words.replace(",", "")) for words in in_dictionaries)
        for name, statement in COUNTS.items():
            command = [binary, "sql", "--quiet", "--format", "csv", "-c", statement.format(f=corpus)]
            found[name] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])
        return found


class Growth:
    """n = a * t^b, by the numbers of two texts."""

    def __init__(self, half, whole, name, is_linear):
        exponent = math.log(whole[name] / half[name]) / math.log(whole["bytes"] / half["bytes"])
        self.exponent = 1.0 if is_linear else min(exponent, 1.0)
        self.factor = whole[name] / whole["bytes"] ** self.exponent

    def at(self, len_bytes):
        return self.factor * len_bytes ** self.exponent


def stages(growth, rows, arguments):
    """Yields (stage, seconds) of a statement that adds up `rows`, and facts about a worker."""
    share = arguments.text_tb * 1e12 / arguments.workers * LARGEST_SHARE
    cores, link = arguments.cores, arguments.link_gb_per_s * GB
    elements = growth["elements"].at(share)
    in_dictionaries = growth["dictionary words"].at(share)
    own_rows, own_words = growth[rows].at(share), growth["words"].at(share)
    sent = own_rows * arguments.row_bytes + own_words * arguments.word_bytes
    yield "read", growth["file"].at(share) / link
    yield "decode", (elements * arguments.element_ns + in_dictionaries * arguments.word_ns) * 1e-9 / cores
    yield "walk", elements * arguments.walk_ns * 1e-9 / cores
    yield "pack and merge", own_rows * arguments.merge_ns * 1e-9 / cores
    yield "exchange", sent * (1 - 1 / arguments.workers) / link


def memory(growth, rows, arguments):
    """Returns the GB that a worker needs: one open segment a core, and its parcel as it is merged."""
    share = arguments.text_tb * 1e12 / arguments.workers * LARGEST_SHARE
    received = growth[rows].at(share) * arguments.merged_bytes + growth["words"].at(share) * arguments.word_bytes
    all_open = growth["elements"].at(share) * arguments.open_bytes
    segments = growth["segments"].at(share)
    return all_open / GB, all_open / max(segments, 1) * arguments.cores / GB, received / GB


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tadoc", default="target/debug/tadoc")
    parser.add_argument("--block-size", default="16MiB")
    parser.add_argument("--text-tb", type=float, default=10)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--link-gb-per-s", type=float, default=1.25, help="of a worker, in each direction")
    parser.add_argument("--element-ns", type=float, default=25, help="to decode an element of a grammar")
    parser.add_argument("--word-ns", type=float, default=60, help="to decode a word of a dictionary")
    parser.add_argument("--walk-ns", type=float, default=200, help="to count the rows of an element")
    parser.add_argument("--merge-ns", type=float, default=1000, help="to pack, send and merge a row")
    parser.add_argument("--row-bytes", type=float, default=6, help="of a packed row")
    parser.add_argument("--word-bytes", type=float, default=12, help="of a word that is sent")
    parser.add_argument("--merged-bytes", type=float, default=20, help="of a row where it is merged")
    parser.add_argument("--open-bytes", type=float, default=12, help="of an element of an open segment")
    arguments = parser.parse_args()

    texts = pieces(arguments.folder)
    grown = [measured(arguments.tadoc, texts[:len(texts) // step], arguments.block_size) for step in STEPS]
    names = [name for name in grown[-1] if name != "bytes"]
    linear = {"file", "elements", "segments", "dictionary words"}
    growth = {name: Growth(grown[-2], grown[-1], name, name in linear) for name in names}
    print("| text, MB | " + " | ".join(names) + " |\n| ---: |" + " ---: |" * len(names))
    for step in grown:
        print(f"| {step['bytes'] / 1e6:.1f} | " + " | ".join(f"{step[name]:,}" for name in names) + " |")
    print("| exponent | " + " | ".join(f"{growth[name].exponent:.2f}" for name in names) + " |")
    whole = arguments.text_tb * 1e12
    print(f"\n{growth['file'].at(whole) / 1e12:.2f} TB of files, {growth['segments'].at(whole):,.0f} segments, "
          f"{growth['words'].at(whole):.1e} different words")
    for rows in ("pairs", "sequences"):
        print(f"\n**{rows}**, {growth[rows].at(whole):.1e} rows, {arguments.text_tb:g} TB on {arguments.workers} workers of {arguments.cores} cores\n")
        found = list(stages(growth, rows, arguments))
        slowest = max(found, key=lambda stage: stage[1])[0]
        for stage, seconds in found:
            print(f"- {stage}: {seconds:,.1f} s{' (slowest)' if stage == slowest else ''}")
        opened, at_once, received = memory(growth, rows, arguments)
        print(f"- memory of a worker: {opened:,.1f} GB if all segments stay open, {at_once:,.2f} GB for one a core, "
              f"{received:,.1f} GB for what it merges")


if __name__ == "__main__":
    main()
