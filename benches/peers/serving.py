#!/usr/bin/env python3
"""Measures how long rows take from `tadoc serve` over ADBC, beside the same rows in the process.

Claim it supports: "a fetch over ADBC takes at most 1.3 times that of the embedded session".

    .ci/python --build
    python3 benches/peers/serving.py --wheel target/wheels/datafusion_tadoc-*.whl FOLDER

Method. The wheel, pyarrow and adbc-driver-flightsql are installed into a new virtual environment, off the
clock. The documents of the folder become a corpus. `tadoc serve` and the session of the
module run on the same cores, and both have opened the corpus before the clock starts. Each way makes a table
of pyarrow of all rows, in turn, --runs times; the way that comes first changes. Both times are medians, and
the ratio is the median of the ratios of each turn. The rows of both ways are compared.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

QUERIES = [
    ("documents with their texts", "SELECT doc_id, path, text FROM documents('{}')", ["doc_id"]),
    ("words of each document", "SELECT doc_id, word, count FROM term_vector('{}')", ["doc_id", "word"]),
    ("one row", "SELECT count(*) AS n FROM search('{}', 'the')", ["n"]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--wheel", type=pathlib.Path, help="else this interpreter has all packages")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    if arguments.wheel is None:
        measure(arguments.folder.resolve(), arguments.runs)
        return
    with tempfile.TemporaryDirectory() as temp:
        python = pathlib.Path(temp) / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", temp], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-index", arguments.wheel.resolve()], check=True)
        subprocess.run([*pip, "pyarrow", "adbc-driver-flightsql"], check=True)
        subprocess.run([python, __file__, arguments.folder, "--runs", str(arguments.runs)], check=True)


def measure(folder, runs):
    import adbc_driver_flightsql.dbapi as flight
    import datafusion_tadoc as tadoc

    with tempfile.TemporaryDirectory() as temp:
        corpus = f"{temp}/texts.tadoc"
        tadoc.ingest(folder, corpus)
        facts = dict(tadoc.connect().corpus_info(corpus).rows())
        documents, megabytes = int(facts["documents"]), int(facts["text_bytes"]) / 1e6
        print(f"{folder.name}: {documents:,} documents, {megabytes:.1f} MB\n")
        print("| rows | number | MB of Arrow | in the process, ms | ADBC, ms | ADBC / in the process |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        server = [sys.executable, "-m", "datafusion_tadoc", "serve", "--listen", "127.0.0.1:0", corpus]
        with subprocess.Popen(server, stderr=subprocess.PIPE, text=True) as server:
            try:
                address = re.search(r"grpc://[\d.]+:\d+", server.stderr.readline()).group()
                with flight.connect(address, autocommit=True) as served, served.cursor() as cursor:
                    for name, query, order in QUERIES:
                        compare(name, Ways(cursor, tadoc.connect(), query, corpus), order, runs)
            finally:
                server.terminate()


class Ways:
    """The two ways to the rows of a query."""

    def __init__(self, cursor, connection, query, corpus):
        self.cursor, self.connection = cursor, connection
        self.of_server, self.of_session = query.format("texts"), query.format(corpus)

    def adbc(self):
        self.cursor.execute(self.of_server)
        return self.cursor.fetch_arrow_table()

    def process(self):
        return self.connection.sql(self.of_session).arrow()


def compare(name, ways, order, runs):
    """Prints the row of the table for one query."""
    table, expected = ways.adbc(), ways.process()
    in_order = [(column, "ascending") for column in order]
    if table.sort_by(in_order) != expected.cast(table.schema).sort_by(in_order):
        raise SystemExit(f"{name}: the rows differ")
    times = {ways.process: [], ways.adbc: []}
    for run in range(runs):
        for way in list(times)[:: 1 if run % 2 else -1]:
            started = time.perf_counter()
            way()
            times[way].append(time.perf_counter() - started)
    in_process, of_adbc = times.values()
    ratio = statistics.median(b / a for a, b in zip(in_process, of_adbc))
    columns = [f"{table.num_rows:,}", f"{table.nbytes / 1e6:.1f}"]
    columns += [f"{statistics.median(seconds) * 1e3:,.1f}" for seconds in (in_process, of_adbc)]
    print(f"| {name} | {' | '.join(columns)} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
