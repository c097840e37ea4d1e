"""Measures GSST tables beside Parquet tables of the same rows, through SQL, on the CPU and on the GPU.

    tpchgen-cli parquet -s 10 --tables=lineitem
    python3 benches/peers/gsst_sql.py --tadoc target/debug/tadoc lineitem.parquet

Writes three columns of the file in five forms. Then it runs every query on every form and device four times in
one session, and prints the shortest time and the rates that the model predicted and the scan measured (GB/s of
text). The queries run under EXPLAIN ANALYZE, so that every batch is made and none is printed. Files are in the
page cache, because they were just written. Needs only Python and tadoc.
"""

import argparse
import pathlib
import re
import subprocess
import tempfile

FORMS = [
    ("GSST, 8 bits", "GSST", ""),
    ("GSST, 12 bits", "GSST", "OPTIONS (gsst_code_bits '12')"),
    ("Parquet, zstd(3)", "PARQUET", "OPTIONS (compression 'zstd(3)')"),
    ("Parquet, snappy", "PARQUET", "OPTIONS (compression 'snappy')"),
    ("Parquet, uncompressed", "PARQUET", "OPTIONS (compression 'uncompressed')"),
]
# 0.02 % of the rows contain 'final deposits n', 1.1 % contain 'final dep', 4.6 % contain 'express'.
LITERALS = ["final deposits n", "final dep", "express"]
QUERIES = [
    "SELECT l_comment FROM t",
    *(f"SELECT count(*) FROM t WHERE l_comment LIKE '%{literal}%'" for literal in LITERALS),
    *(f"SELECT l_comment FROM t WHERE l_comment LIKE '%{literal}%'" for literal in LITERALS),
    "SELECT l_orderkey FROM t WHERE l_comment LIKE '%express%'",
    "SELECT l_comment FROM t WHERE l_quantity < 2",
]
NUM_RUNS = 4


def tadoc(binary, statements):
    """Runs statements in one session and returns standard output and the times in seconds."""
    run = subprocess.run(
        [binary, "sql", "--format", "csv", "-c", ";".join(statements)],
        capture_output=True, text=True, check=False,
    )
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    units = {"ms": 1e-3, "s": 1.0}
    times = re.findall(r"rows?, ([\d.]+) (ms|s)", run.stderr)
    return run.stdout, [float(number) * units[unit] for number, unit in times]


def ask(binary, folder, form, device, query):
    """Returns the shortest time of a query, with the predicted and measured rates of text in GB/s if the plan has
    them; or the reason why there is no time."""
    table = f"CREATE EXTERNAL TABLE t STORED AS {form} LOCATION '{folder}/'"
    asked = [f"EXPLAIN ANALYZE {query}"] * NUM_RUNS
    try:
        plans, times = tadoc(binary, [f"SET tadoc.device = '{device}'", table, *asked])
    except RuntimeError as error:
        return str(error).splitlines()[-1][:60]
    cell = f"{min(times[-NUM_RUNS:]):.3f} s"
    rates = [re.findall(rf"{name}_mb_per_s=([\d.]+)( K)?", plans) for name in ("predicted", "measured")]
    if all(rates):
        best = [max(float(number) * (1 if thousands else 1e-3) for number, thousands in of) for of in rates]
        cell += " ({:.1f}, {:.1f})".format(*best)
    return cell


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tadoc", default="target/debug/tadoc")
    parser.add_argument("lineitem", help="a Parquet file with TPC-H's lineitem")
    arguments = parser.parse_args()
    print("| form | device | bytes | " + " | ".join(f"`{query}`" for query in QUERIES) + " |")
    print("| --- | --- | ---: |" + " ---: |" * len(QUERIES))
    with tempfile.TemporaryDirectory() as work:
        for form_idx, (name, form, options) in enumerate(FORMS):
            folder = pathlib.Path(work) / str(form_idx)
            rows = f"SELECT l_orderkey, l_quantity, l_comment FROM '{arguments.lineitem}'"
            tadoc(arguments.tadoc, [f"COPY ({rows}) TO '{folder}/' STORED AS {form} {options}"])
            num_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            for device in ["cpu", "gpu", "auto"] if form == "GSST" else ["cpu"]:
                cells = [ask(arguments.tadoc, folder, form, device, query) for query in QUERIES]
                print(f"| {name} | {device} | {num_bytes:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
