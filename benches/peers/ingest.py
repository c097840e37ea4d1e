#!/usr/bin/env python3
"""Measures the rate of `tadoc ingest`, its memory and its files, beside peers that pack the same documents.

Claim it supports: "ingest at the rate of Tantivy with stored text and two threads, or faster". Several binaries
of ours can be named, to compare the code before and after a change in one run.

    pip install tantivy duckdb zstandard
    python3 benches/peers/ingest.py --tadoc now=target/debug/tadoc --tadoc before=/tmp/old/tadoc FOLDER ... lines:FOLDER ...

A document is a file, and with `lines:` in front of the folder a line. `kinds.py` makes folders of seven kinds of text.
The peers of `--peers`: Tantivy with stored text and positions, two threads or as many as are named in `--cores`;
`zstd -3 --long=27` of the concatenated documents, one thread as is its default (by the package `zstandard` where the
command is missing); and DuckDB, `COPY` of path and text to Parquet with zstd.

Each packer is a process of its own. The packers take turns, and the shortest of `--rounds` times counts.
Prints Markdown with a row for each corpus and packer: time, MB/s of raw text, its ratio to the rate of Tantivy,
processor time (user and system, the median of the rounds) and its ratio to that of Tantivy, bytes of the output and
their share of the raw bytes, and the greatest resident memory. Behind ours are the seconds of each step, as `tadoc
ingest` tells them: waiting for input, tokens and grammar (sums over all texts in work), writing. Tantivy and DuckDB are called from
Python, whose own time and memory are included. On a machine with other work only processor times can be compared.
`--cores 0,1` binds all packers to these cores.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from statistics import median

from documents import document_paths, read_documents, stage, text_of
from sizes import folder_len

STEPS = re.compile(r"waiting for input ([\d.]+ \w+), tokens ([\d.]+ \w+), grammar ([\d.]+ \w+), writing ([\d.]+ \w+)")


def measured(command):
    """Runs a command and returns (seconds, peak MB, processor seconds, its messages)."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    messages = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"exit status {status}: {command}\n{messages}")
    return seconds, usage.ru_maxrss / 1000, usage.ru_utime + usage.ru_stime, messages


def ingest(binary, options, staged, unit, out):
    """Packs the documents by one of our binaries."""
    found = measured([binary, "ingest", staged, "-o", out, "--force", "--documents", unit, *options])
    seconds, peak_mb, processor, messages = found
    steps = STEPS.search(messages)
    return seconds, peak_mb, os.path.getsize(out), processor, ", ".join(steps.groups()) if steps else ""


def peer(function, *arguments, out):
    """Runs a function of this file in a process of its own, which writes the file or folder `out`."""
    if os.path.isdir(out):
        shutil.rmtree(out)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import ingest; getattr(ingest, sys.argv[2])(*sys.argv[3:])"
    command = [sys.executable, "-c", code, os.path.dirname(os.path.abspath(__file__)), function, *map(str, arguments), out]
    seconds, peak_mb, processor, _ = measured(command)
    return seconds, peak_mb, folder_len(out) if os.path.isdir(out) else os.path.getsize(out), processor, ""


def documents(folder, unit):
    """Yields (path, bytes) of each document, a file or a line."""
    for path, data in read_documents(folder):
        if unit == "files":
            yield path, data
        else:
            lines = data.split(b"\n")
            yield from ((path, line) for line in (lines if lines[-1] else lines[:-1]))


def tantivy_index(folder, unit, num_threads, out):
    """Writes an index with positions, stored path and stored text (lz4 document store, Tantivy's default)."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("path", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", stored=True, index_option="position")
    os.makedirs(out)
    index = tantivy.Index(builder.build(), path=out)
    writer = index.writer(heap_size=(128 << 20) * int(num_threads), num_threads=int(num_threads))
    for path, data in documents(folder, unit):
        writer.add_document(tantivy.Document(path=path, text=text_of(data)))
    writer.commit()
    writer.wait_merging_threads()
    writer = index.writer()
    writer.garbage_collect_files()


def zstd_file(text, out):
    """Writes what `zstd -3 --long=27` would."""
    import zstandard

    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, enable_ldm=True)
    with open(text, "rb") as source, open(out, "wb") as target:
        zstandard.ZstdCompressor(compression_params=parameters).copy_stream(source, target)


def parquet_file(folder, unit, num_threads, out):
    """Writes Parquet with columns path and content, zstd, as DuckDB reads and writes it by default."""
    import duckdb

    paths = [os.path.join(folder, path) for path in document_paths(folder)]
    connection = duckdb.connect(config={"threads": int(num_threads)})
    connection.execute("SET VARIABLE paths = $1", [paths])
    if unit == "files":
        source = "SELECT filename, content FROM read_blob(getvariable('paths'))"
    else:
        source = (
            "SELECT filename, line FROM read_csv(getvariable('paths'), columns = {'line': 'VARCHAR'}, delim = chr(1), "
            "quote = '', escape = '', header = false, auto_detect = false, ignore_errors = true, filename = true, "
            "max_line_size = 16000000)"
        )
    connection.execute(f"COPY ({source}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)")


def packers_of(arguments, folder, unit, temp, num_threads):
    """Returns {name: a function that packs and returns its figures}."""
    staged, out = stage(folder, temp), os.path.join(temp, "corpus.tadoc")
    binaries = dict(text.split("=", 1) for text in arguments.tadoc or ["tadoc=target/debug/tadoc"])
    options = arguments.options.split()
    packers = {
        name: lambda binary=binary: ingest(binary, options, staged, unit, out) for name, binary in binaries.items()
    }
    peers = arguments.peers.split(",")
    if "tantivy" in peers:
        packers["Tantivy"] = lambda: peer("tantivy_index", folder, unit, num_threads, out=os.path.join(temp, "tantivy"))
    if "zstd" in peers:
        text, packed = os.path.join(temp, "text"), os.path.join(temp, "text.zst")
        with open(text, "wb") as file:
            file.writelines(data for _, data in read_documents(folder))
        packers["zstd -3 --long"] = lambda: zstd(text, packed)
    if "duckdb" in peers:
        packers["DuckDB"] = lambda: peer("parquet_file", folder, unit, num_threads, out=os.path.join(temp, "parquet"))
    return packers


def zstd(text, packed):
    """Packs one file by the command, or by the package if there is no command."""
    if not shutil.which("zstd"):
        return peer("zstd_file", text, out=packed)
    seconds, peak_mb, processor, _ = measured(["zstd", "-3", "--long=27", "-T1", "-qf", text, "-o", packed])
    return seconds, peak_mb, os.path.getsize(packed), processor, ""


def measure(packers, rounds):
    """Returns {packer: its figures} of the fastest round of each, with the median of the processor seconds."""
    turns = [[pack() for pack in packers.values()] for _ in range(rounds)]
    by_packer = zip(packers, zip(*turns))
    fastest = {name: (min(results), median(result[3] for result in results)) for name, results in by_packer}
    return {name: (*best[:3], processor, best[4]) for name, (best, processor) in fastest.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="FOLDER")
    parser.add_argument("--tadoc", action="append", metavar="NAME=BINARY", help="default: tadoc=target/debug/tadoc")
    parser.add_argument("--options", default="", help="further options of `tadoc ingest`, as one text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", help="cores of all packers, such as 0,1")
    parser.add_argument("--peers", default="tantivy,zstd,duckdb", help="peers beside ours, or none")
    arguments = parser.parse_args()
    num_threads = 2
    if arguments.cores:
        cores = set(map(int, arguments.cores.split(",")))
        os.sched_setaffinity(0, cores)
        num_threads = len(cores)
    print("| corpus | packer | s | MB/s | rate / Tantivy | processor s | / Tantivy | bytes | share | peak MB | steps |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for corpus in arguments.corpora:
        folder = corpus.removeprefix("lines:")
        unit = "files" if folder == corpus else "lines"
        with tempfile.TemporaryDirectory() as temp:
            raw = sum(len(data) for _, data in read_documents(folder))
            best = measure(packers_of(arguments, folder, unit, temp, num_threads), arguments.rounds)
            other, _, _, other_processor, _ = best.get("Tantivy", (None,) * 5)
            for name, (seconds, peak_mb, num_bytes, processor, steps) in best.items():
                ratio = f"{other / seconds:.2f}" if other else ""
                of_other = f"{processor / other_processor:.2f}" if other else ""
                shown, rate = os.path.basename(folder.rstrip("/")), raw / seconds / 1e6
                print(f"| {shown} | {name} | {seconds:.2f} | {rate:.1f} | {ratio} | {processor:.2f} | {of_other} | {num_bytes:,} "
                      f"| {num_bytes / raw:.4f} | {peak_mb:.0f} | {steps} |")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
