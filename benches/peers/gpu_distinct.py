#!/usr/bin/env python3
"""Measures count(DISTINCT column) of GSST columns through SQL: a device beside all cores of its machine.

    tpchgen-cli parquet -s 4 --tables=lineitem
    tadoc sql -c "COPY (SELECT l_comment, l_shipmode FROM 'lineitem.parquet') TO 'gsst.parquet' STORED AS GSST
        OPTIONS (gsst_columns 'l_comment, l_shipmode')"
    python3 benches/peers/gpu_distinct.py --tadoc target/release/tadoc gsst.parquet l_comment l_shipmode

The cores, the device and `auto` have one session each, which runs the statement --runs times after one about the same
column that opens the device. Times are the shortest and the median, in milliseconds, as `tadoc sql` prints them. The
numbers of the sessions are compared. Needs only Python and a device.
"""

import argparse
import re
import statistics
import subprocess

DEVICES = ("cpu", "gpu", "auto")


def run(tadoc, device, file, column, num_runs):
    """Returns the milliseconds of the runs on `device`, and the numbers that they print."""
    statements = [f"SET tadoc.device = '{device}'", f"CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{file}'"]
    statements += [f"SELECT max(octet_length({column})) FROM t"] * 3
    statements += [f"SELECT count(DISTINCT {column}) FROM t"] * num_runs
    done = subprocess.run([tadoc, "sql", "--format", "csv"], input="".join(f"{one};\n" for one in statements),
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"tadoc sql failed: {done.stderr}")
    times = [float(time) * (1000 if unit == "s" else 1)
             for time, unit in re.findall(r"rows?, ([0-9.]+) (ms|s)", done.stdout + done.stderr)]
    numbers = [line for line in done.stdout.splitlines() if line.isdigit()]
    return times[-num_runs:], numbers[-num_runs:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tadoc", required=True)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("file", help="a Parquet file with GSST columns")
    parser.add_argument("columns", nargs="+")
    arguments = parser.parse_args()
    print("| column | distinct | " + " | ".join(f"{one}, ms (median)" for one in DEVICES) + " | cpu : gpu | cpu : auto |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for column in arguments.columns:
        found = [run(arguments.tadoc, one, arguments.file, column, arguments.runs) for one in DEVICES]
        numbers = {number for _, printed in found for number in printed}
        if len(numbers) != 1:
            raise SystemExit(f"{column}: different numbers {numbers}")
        cpu, gpu, auto = [min(times) for times, _ in found]
        shown = " | ".join(f"{min(times):.1f} ({statistics.median(times):.1f})" for times, _ in found)
        print(f"| {column} | {numbers.pop()} | {shown} | {cpu / gpu:.1f} | {cpu / auto:.1f} |", flush=True)


if __name__ == "__main__":
    main()
