#!/usr/bin/env python3
"""Compares the query language with SQLite's FTS5 on random queries over the same documents.

FTS5 (in Python's standard library) is an outside oracle: it has its own parser, tokenizer and index.
Both find the documents of each query with words in any case; every difference is printed, and the
status is then 1. Times are those of all statements of one process each: the table of FTS5 is in
memory and made before, the corpus is opened by the first statement.

    benches/peers/fts5.py ../shared/corpora/a-tldr --queries 2000

FTS5 is told to take the same characters as words (`categories`), but its Unicode tables are older.
Queries are made of ASCII words.
"""

import argparse
import json
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import time


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
    queries = list(random_queries(texts, rng, args.queries))
    with tempfile.TemporaryDirectory() as folder:
        ours, our_seconds = of_tadoc(args.tadoc, texts, queries, pathlib.Path(folder))
    theirs, their_seconds = of_fts5(texts, queries)
    differences = [i for i in range(len(queries)) if ours[i] != theirs[i]]
    for i in differences[:10]:
        only_ours = sorted(set(ours[i]) - set(theirs[i]))[:5]
        only_theirs = sorted(set(theirs[i]) - set(ours[i]))[:5]
        print(f"{queries[i]}\n  only tadoc: {only_ours}  only FTS5: {only_theirs}")
    found = sum(map(bool, theirs))
    print(f"{len(texts)} documents, {len(queries)} queries, {found} with documents, "
          f"{len(differences)} different, time / FTS5 {our_seconds / their_seconds:.2f}")
    sys.exit(1 if differences else 0)


def random_queries(texts, rng, number):
    """Yields queries of words and phrases that stand in the texts, joined by every operator."""
    words_of = [re.findall(r"\b[A-Za-z][A-Za-z0-9]*\b", text) for text in rng.sample(texts, min(300, len(texts)))]
    words_of = [words for words in words_of if len(words) > 20]

    def phrase(most):
        words = rng.choice(words_of)
        at = rng.randrange(len(words))
        return '"' + " ".join(words[at:at + rng.randint(1, most)]) + '"'

    def near():
        words = rng.choice(words_of)
        at = rng.randrange(len(words))
        picked = [words[min(at + rng.randrange(12), len(words) - 1)] for _ in range(rng.randint(2, 3))]
        return "NEAR(" + " ".join(f'"{word}"' for word in picked) + f", {rng.randint(0, 12)})"

    def prefix():
        return rng.choice(rng.choice(words_of))[:rng.randint(2, 5)] + "*"

    def leaf():
        return rng.choice([lambda: phrase(1), lambda: phrase(3), near, prefix])()

    def node(depth):
        if depth == 0 or rng.random() < 0.3:
            return leaf()
        joiner = rng.choice([" AND ", " OR ", " NOT ", " "])
        if joiner == " ":
            # FTS5 has no implied AND around parentheses.
            return " ".join(leaf() for _ in range(rng.randint(2, 3)))
        parts = [node(depth - 1) for _ in range(2)]
        return joiner.join(f"({part})" if rng.random() < 0.5 else part for part in parts)

    for _ in range(number):
        yield node(rng.randint(0, 3))


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


def of_fts5(texts, queries):
    db = sqlite3.connect(":memory:")
    tokenizer = "unicode61 remove_diacritics 0 categories 'L* Nd Nl M* Pc'"
    db.execute(f'CREATE VIRTUAL TABLE t USING fts5(x, tokenize="{tokenizer}")')
    db.executemany("INSERT INTO t(rowid, x) VALUES (?, ?)", enumerate(texts))
    start = time.perf_counter()
    found = [sorted(row[0] for row in db.execute("SELECT rowid FROM t WHERE t MATCH ?", (query,)))
             for query in queries]
    return found, time.perf_counter() - start


if __name__ == "__main__":
    main()
