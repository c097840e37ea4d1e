#!/usr/bin/env python3
"""Measures tasks over corpora through SQL: a device beside all cores of its machine, rows compared.

Claim it supports: "end to end through SQL, with upload, sequences and pairs are counted at least 3 times as fast
as on all 16 cores, and `auto` is never slower than 0.95 of them" (results in benches/results/2026-11-23-h200.md).

    cargo build --release
    python3 benches/peers/gpu_sql.py --tadoc target/release/tadoc A.tadoc B.tadoc ...

Method. The cores, the device and `auto` have one session each. In it the file is open, and a statement about a small
corpus has opened the device. Every statement ends in one row that reads every column of every row. "Cores" and "again"
are the shortest of three runs after the first, "with upload" is the first run on the device. Numbers of rows and sums of
all columns are compared. With --rows, all rows are sorted, hashed and compared (for small corpora, because that takes
longer than everything else). Needs only Python and a device.
"""

import argparse
import re
import subprocess
import tempfile

# Sums over the lengths or values of all columns. A second word is an argument that is true.
TASKS = {
    "word_count": "sum(octet_length(word)), sum(count)",
    "term_vector": "sum(doc_id), sum(octet_length(word)), sum(count)",
    "tfidf": "sum(doc_id), sum(octet_length(word)), sum(tf), sum(df)",
    "inverted_index": "sum(octet_length(word)), sum(doc_count), sum(cardinality(doc_ids))",
    "sequence_count": "sum(octet_length(sequence)), sum(count)",
    "sequence_count by_doc": "sum(doc_id), sum(octet_length(sequence)), sum(count)",
    "ranked_inverted_index": "sum(octet_length(sequence)), sum(doc_id), sum(count), sum(rank)",
    "cooccurrence": "sum(octet_length(word1)), sum(octet_length(word2)), sum(count)",
}
# Texts of rows, for a fingerprint of each row.
ROWS = {
    "word_count": "word || ' ' || count",
    "term_vector": "doc_id || ' ' || word || ' ' || count",
    "tfidf": "doc_id || ' ' || word || ' ' || tf || ' ' || df || ' ' || score",
    "inverted_index": "word || ' ' || doc_count || ' ' || array_to_string(doc_ids, ' ')",
    "sequence_count": "sequence || ' ' || count",
    "sequence_count by_doc": "doc_id || ' ' || sequence || ' ' || count",
    "ranked_inverted_index": "sequence || ' ' || doc_id || ' ' || count || ' ' || rank",
    "cooccurrence": "word1 || ' ' || word2 || ' ' || count",
}
NUM_RUNS = 4


def run(tadoc, device, statements):
    """Runs statements in one session and returns the milliseconds and printed rows of each."""
    setting = "" if device is None else f"SET tadoc.device = '{device}';\n"
    done = subprocess.run([tadoc, "sql", "--format", "csv"], input=setting + "".join(f"{s};\n" for s in statements),
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"tadoc sql failed: {done.stderr}")
    printed = done.stdout + done.stderr
    times = [float(time) * (1000 if unit == "s" else 1)
             for time, unit in re.findall(r"rows?, ([0-9.]+) (ms|s)", printed)]
    rows = [line for line in done.stdout.splitlines() if re.fullmatch(r"[0-9a-f,.-]+", line)]
    return times[-len(statements):], rows


def called(task, corpus):
    """Returns the call of a task."""
    name, _, argument = task.partition(" ")
    return f"{name}('{corpus}', {argument} => true)" if argument else f"{name}('{corpus}')"


def measure(tadoc, small, corpus, task, compares_rows):
    """Returns the times of cores, device with upload, device again and `auto`, and True if the answers agree."""
    opened = [f"SELECT sum(count) FROM word_count('{small}')", f"SELECT count(*) FROM term_count('{corpus}', 'x')"]
    statement = f"SELECT count(*), {TASKS[task]} FROM {called(task, corpus)}"
    found, rows = {}, {}
    for device in ("cpu", "gpu", "auto"):
        times, rows[device] = run(tadoc, device, opened + [statement] * NUM_RUNS)
        found[device] = times[len(opened):]
    answers = {device: rows[device][len(opened):] for device in rows}
    if compares_rows:
        of_all = f"SELECT md5(string_agg(r, chr(10) ORDER BY r)) FROM (SELECT {ROWS[task]} AS r FROM {called(task, corpus)})"
        answers = {device: run(tadoc, device, [of_all])[1] for device in ("cpu", "gpu")}
    same = len(set(map(tuple, answers.values()))) == 1 and all(answers.values())
    return min(found["cpu"][1:]), found["gpu"][0], min(found["gpu"][1:]), min(found["auto"][1:]), same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tadoc", required=True)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--rows", action="store_true", help="compare all rows")
    parser.add_argument("corpora", nargs="+")
    arguments = parser.parse_args()
    print("| corpus | function | all cores, ms | with upload | again | cores : with upload | cores : again | cores : auto | rows |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory() as temp:
        small = f"{temp}/small.tadoc"
        run(arguments.tadoc, None, [f"COPY (SELECT 'a few words' AS text) TO '{small}' STORED AS TADOC"])
        for corpus in arguments.corpora:
            for task in arguments.tasks.split(","):
                cores, first, again, auto, same = measure(arguments.tadoc, small, corpus, task, arguments.rows)
                name = corpus.rsplit("/", 1)[-1].removesuffix(".tadoc")
                print(f"| {name} | {task} | {cores:.1f} | {first:.1f} | {again:.1f} | {cores / first:.2f} | "
                      f"{cores / again:.2f} | {cores / auto:.2f} | {'equal' if same else 'DIFFERENT'} |", flush=True)


if __name__ == "__main__":
    main()
