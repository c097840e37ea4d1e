#!/usr/bin/env python3
"""Measures `tadoc ingest` of rows of JSON, CSV and Parquet beside the same texts as lines, and DuckDB; and functions of fields.

Claims it supports: "JSON lines take at most 1.5 times as long as lines" and "fields are read at 1 million lines a second
and core".

    pip install duckdb pyarrow
    python3 benches/peers/rows.py [--tadoc target/release/tadoc] [--rows 300000] [--runs 3]

Method. Rows have four fields: a text of 4 to 20 words, a number, a level and a time. They are written as JSON lines, CSV,
Parquet and, the texts alone, lines. Each source becomes a corpus, in turn with the others, and the least processor time of
the whole process counts, user and system. DuckDB reads the same JSON and writes Parquet with zstd: it keeps no words. A function of
fields is the difference between a statement with it and `count(text)` of the same Parquet file, on one partition, so
reading the texts is not in it.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import pyarrow
import pyarrow.csv
import pyarrow.parquet

from opening import measured

WORDS = ["disk", "request", "failed", "user", "timeout", "cache", "retry", "connection", "opened", "closed", "query", "took"]
FIELDS = {
    "parse": "parse(text, 'user={user} took {ms:int} ms')['ms']",
    "logfmt, one key": "logfmt(text, 'user')",
    "logfmt": "logfmt(text)",
    "grok": "grok(text, 'user=%{WORD:user} took %{INT:ms:int} ms')['ms']",
    "json_get": "json_get(json, 'user')",
}
DUCKDB = "import duckdb; duckdb.sql(\"COPY (SELECT * FROM read_json('rows.jsonl')) TO 'duck.parquet' (COMPRESSION zstd)\")"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tadoc", default="target/release/tadoc")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    tadoc = os.path.abspath(arguments.tadoc)
    with tempfile.TemporaryDirectory() as temp:
        os.chdir(temp)
        write_rows(arguments.rows)
        ingests(tadoc, arguments)
        fields(tadoc, arguments)


def write_rows(num_rows):
    chance = random.Random(45)
    rows = []
    for number in range(num_rows):
        words = " ".join(chance.choice(WORDS) for _ in range(chance.randint(4, 20)))
        level = chance.choice(["INFO", "INFO", "WARN", "ERROR"])
        text = f"level={level} user=u{chance.randrange(5000)} took {chance.randrange(900)} ms {words}"
        rows.append({"text": text, "number": number, "level": level, "time": f"2026-11-29T{number % 24:02}:10:{number % 60:02}Z"})
    with open("rows.jsonl", "w") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    with open("rows.txt", "w") as out:
        out.writelines(row["text"] + "\n" for row in rows)
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.csv.write_csv(table, "rows.csv")
    pyarrow.parquet.write_table(table, "rows.parquet")
    texts = [row["text"] for row in rows]
    objects = [json.dumps({"id": row["number"], "user": row["text"].split()[1], "text": row["text"]}) for row in rows]
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "json": objects}), "fields.parquet")


def least(commands, runs):
    """Returns the least processor time of each command, and its least wall time. They run in turn."""
    taken = [[measured(command)[1:3] for command in commands] for _ in range(runs)]
    return [(min(run[at][1] for run in taken), min(run[at][0] for run in taken)) for at in range(len(commands))]


def ingests(tadoc, arguments):
    sources = {
        "lines": ["rows.txt", "--documents", "lines"],
        "JSON lines": ["rows.jsonl", "--documents", "jsonl:text"],
        "CSV": ["rows.csv", "--documents", "csv:text"],
        "Parquet": ["rows.parquet", "--documents", "parquet:text"],
    }
    commands = [[tadoc, "ingest", *source, "-o", f"{at}.tadoc", "--force", "-q"] for at, source in enumerate(sources.values())]
    commands.append([sys.executable, "-c", DUCKDB])
    times = least(commands, arguments.runs)
    lines = times[0]
    print(f"{arguments.rows} rows, {os.path.getsize('rows.jsonl') / 1e6:.0f} MB of JSON\n")
    print("| source | processor time / lines | wall time / lines |\n| --- | ---: | ---: |")
    for name, (processor, wall) in zip([*sources, "DuckDB, read_json and COPY"], times):
        print(f"| {name} | {processor / lines[0]:.2f} | {wall / lines[1]:.2f} |")


def fields(tadoc, arguments):
    def command(expression):
        sql = f"SET datafusion.execution.target_partitions = 1; SELECT count({expression}) FROM 'fields.parquet'"
        return [tadoc, "sql", "-q", "--format", "csv", "-c", sql]

    commands = [command("text"), command("json"), *map(command, FIELDS.values())]
    times = least(commands, arguments.runs)
    print("\n| function | million texts a second and core |\n| --- | ---: |")
    for (name, expression), (processor, _) in zip(FIELDS.items(), times[2:]):
        base = times[1 if "json" in expression else 0][0]
        print(f"| {name} | {arguments.rows / max(processor - base, 1e-9) / 1e6:.2f} |")


if __name__ == "__main__":
    main()
