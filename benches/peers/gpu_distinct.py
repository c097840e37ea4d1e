#!/usr/bin/env python3
"""Measures count(DISTINCT column) and the most frequent rows of GSST columns through SQL: a device beside all cores.

    tpchgen-cli parquet -s 4 --tables=lineitem
    tadoc sql -c "COPY (SELECT l_comment, l_shipmode FROM 'lineitem.parquet') TO 'gsst.parquet' STORED AS GSST
        OPTIONS (gsst_columns 'l_comment, l_shipmode')"
    python3 benches/peers/gpu_distinct.py --tadoc target/release/tadoc --like '%final%' gsst.parquet l_comment l_shipmode

The cores, the device and `auto` have one session each, which runs a statement --runs times after one about the same
column that opens the device. Times are the shortest and the median, in milliseconds, as `tadoc sql` prints them. The
rows of the sessions are compared. Statements: the number of different rows, the ten most frequent ones, and both for
the rows that are LIKE --like. Needs only Python and a device.
"""

import argparse
import re
import statistics
import subprocess

DEVICES = ("cpu", "gpu", "auto")


TIME = re.compile(r"rows?, ([0-9.]+) (ms|s)")


def statements_about(column, like):
    """Returns names and texts of the statements."""
    for name, condition in [("", "")] + ([(f", LIKE '{like}'", f"WHERE {column} LIKE '{like}'")] if like else []):
        yield f"different rows{name}", f"SELECT count(DISTINCT {column}) FROM t {condition}"
        yield (f"10 most frequent{name}", f"SELECT {column}, count(*) AS n FROM t {condition} GROUP BY {column} "
               f"ORDER BY n DESC, {column} LIMIT 10")


def run(tadoc, device, file, column, statement, num_runs):
    """Returns the milliseconds of the runs on `device`, and all that they print."""
    statements = [f"SET tadoc.device = '{device}'", f"CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{file}'"]
    statements += [f"SELECT max(octet_length({column})) FROM t"] * 3
    statements += [statement] * num_runs
    done = subprocess.run([tadoc, "sql", "--format", "csv"], input="".join(f"{one};\n" for one in statements),
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"tadoc sql failed: {done.stderr}")
    times = [float(time) * (1000 if unit == "s" else 1)
             for time, unit in TIME.findall(done.stdout + done.stderr)]
    rows = [line for line in done.stdout.splitlines() if not re.search(r", [0-9.]+ (ms|s)$", line)]
    return times[-num_runs:], rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tadoc", required=True)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--like", help="pattern of a condition")
    parser.add_argument("file", help="a Parquet file with GSST columns")
    parser.add_argument("columns", nargs="+")
    arguments = parser.parse_args()
    print("| column | rows | " + " | ".join(f"{one}, ms (median)" for one in DEVICES) + " | cpu : gpu | cpu : auto |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for column in arguments.columns:
        for name, statement in statements_about(column, arguments.like):
            found = [run(arguments.tadoc, one, arguments.file, column, statement, arguments.runs) for one in DEVICES]
            rows = found[0][1]
            if len(rows) <= 3 or any(printed != rows for _, printed in found):
                raise SystemExit(f"{column}, {name}: different rows")
            cpu, gpu, auto = [min(times) for times, _ in found]
            shown = " | ".join(f"{min(times):.1f} ({statistics.median(times):.1f})" for times, _ in found)
            print(f"| {column} | {name} | {shown} | {cpu / gpu:.1f} | {cpu / auto:.1f} |", flush=True)


if __name__ == "__main__":
    main()
