#!/usr/bin/env python3
"""Compares the query language with SQLite's FTS5 on random queries over the same documents.

FTS5 (in Python's standard library) is an outside oracle: it has its own parser, tokenizer and index.
Both find the documents of each query with words in any case; every difference is printed, and the
status is then 1. Times are those of all statements of one process each: the table of FTS5 is in
memory and made before, the corpus is opened by the first statement.

    benches/peers/fts5.py ../shared/corpora/a-tldr --queries 2000

The queries and the table of FTS5 are those of a test, `tests/python/test_fts5.py`.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/python"))
import fts5_queries  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tadoc", default="target/debug/tadoc")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    files = sorted(path for path in args.folder.rglob("*") if path.is_file())
    texts = [path.read_bytes().decode("utf-8", "replace").replace("\0", " ") for path in files]
    queries = list(fts5_queries.random_queries(texts, rng, args.queries))
    with tempfile.TemporaryDirectory() as folder:
        ours, our_seconds = of_tadoc(args.tadoc, texts, queries, pathlib.Path(folder))
    table = fts5_queries.table_of(texts)
    start = time.perf_counter()
    theirs = fts5_queries.documents_of(table, queries)
    their_seconds = time.perf_counter() - start
    differences = [i for i in range(len(queries)) if ours[i] != theirs[i]]
    for i in differences[:10]:
        only_ours = sorted(set(ours[i]) - set(theirs[i]))[:5]
        only_theirs = sorted(set(theirs[i]) - set(ours[i]))[:5]
        print(f"{queries[i]}\n  only tadoc: {only_ours}  only FTS5: {only_theirs}")
    found = sum(map(bool, theirs))
    print(f"{len(texts)} documents, {len(queries)} queries, {found} with documents, "
          f"{len(differences)} different, time / FTS5 {our_seconds / their_seconds:.2f}")
    sys.exit(1 if differences else 0)


def of_tadoc(tadoc, texts, queries, folder):
    plain, corpus = folder / "plain", folder / "texts.tadoc"
    plain.mkdir()
    for i, text in enumerate(texts):
        (plain / f"{i:07}").write_text(text, newline="")
    subprocess.run([tadoc, "ingest", str(plain), "-o", str(corpus)], check=True, capture_output=True)
    paths = run_sql(tadoc, f"SELECT doc_id, path FROM documents('{corpus}');")
    number = {row["doc_id"]: int(row["path"]) for row in paths}
    quoted = [query.replace("'", "''") for query in queries]
    statements = "".join(
        f"SELECT {i} AS query, doc_id FROM term_count('{corpus}', '{query}', fold => true);\n"
        for i, query in enumerate(quoted))
    start = time.perf_counter()
    rows = run_sql(tadoc, statements)
    seconds = time.perf_counter() - start
    found = [[] for _ in queries]
    for row in rows:
        found[row["query"]].append(number[row["doc_id"]])
    return [sorted(docs) for docs in found], seconds


def run_sql(tadoc, statements):
    done = subprocess.run([tadoc, "sql", "--quiet", "--format", "ndjson"], input=statements,
                          capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


if __name__ == "__main__":
    main()
