#!/usr/bin/env python3
"""Measures word_count, inverted_index, term_vector, tfidf, sequence_count (3 words) and cooccurrence (5) in DuckDB
and in `tadoc sql`, and four of them in Polars.

Claim it supports: "word_count and inverted_index, warm, through SQL: at least 50x and 10x DuckDB on
the same text and the same word definition, rows equal".

    pip install duckdb polars pyarrow
    python3 benches/peers/analytics.py --tadoc target/debug/tadoc ../shared/corpora/d-logs

Method. Before the clock starts, every engine has its documents in the form that suits it best: DuckDB
and Polars have a table (doc_id, path, text) in memory, tadoc has a `.tadoc` file that its session has
opened once. Each engine has two threads. A query runs four times in one session. "First" is the first
run, "warm" is the shortest of the others. Each timed query ends in one row that reads every column of
every result row, so printing is not measured and no engine can skip a column. Afterwards the full
results are compared row by row.

A word is Rust's `\\w+`: [\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}] of Unicode 16. DuckDB's
RE2 has `\\w` for ASCII only, no \\p{Alphabetic}, and an older Unicode, so `word_pattern` spells the
class out. Polars has Rust's regex. For DuckDB and Polars, U+FFFD replaces the invalid bytes of documents
that are not valid UTF-8; tadoc stores the bytes as they are. Neither belongs to a word.
"""

import argparse
import os
import re
import subprocess
import tempfile
import time

from documents import read_documents, stage, text_of

NUM_THREADS = 2
NUM_RUNS = 4
os.environ["POLARS_MAX_THREADS"] = str(NUM_THREADS)

# Word characters of Unicode 16 that RE2's tables in DuckDB 2.0.0 lack: 5,055 of 144,667.
NEW_WORD = """
    897 1C89-1C8A A7CB-A7CD A7DA-A7DC 105C0-105F3 10D40-10D65 10D69-10D6D 10D6F-10D85
    10EC2-10EC4 10EFC 11380-11389 1138B 1138E 11390-113B5 113B7-113C0 113C2 113C5
    113C7-113CA 113CC-113D3 113E1-113E2 116D0-116E3 11BC0-11BE0 11BF0-11BF9 11F5A
    13460-143FA 16100-16139 16D40-16D6C 16D70-16D79 18CFF 1CCF0-1CCF9 1E5D0-1E5FA
    2EBF0-2EE5D
"""


def word_pattern():
    """Returns Rust's `\\w+` for RE2. It was equal to regex-syntax 0.8.11 for every code point."""
    # \p{Alphabetic} = L + Nl + Other_Alphabetic. Characters of the last that are not in \p{M} are enclosed letters.
    other = "200C 200D 24B6-24E9 1F130-1F149 1F150-1F169 1F170-1F189 " + NEW_WORD
    spans = ("-".join(rf"\x{{{end}}}" for end in span.split("-")) for span in other.split())
    return rf"[\p{{L}}\p{{Nl}}\p{{M}}\p{{Nd}}\p{{Pc}}{''.join(spans)}]+"


WORD = word_pattern()

# Words of a whole document at once, or line by line (no word contains a line end).
DOCS_WORDS = f"SELECT doc_id, unnest(regexp_extract_all(text, '{WORD}')) AS word FROM docs"
LINES_WORDS = f"""
    SELECT doc_id, unnest(regexp_extract_all(line, '{WORD}')) AS word
    FROM (SELECT doc_id, unnest(string_split(text, chr(10))) AS line FROM docs)"""
COUNTED = "SELECT word, count(*) AS count FROM ({}) GROUP BY word"
VECTORS = "SELECT doc_id, word, count(*) AS count FROM ({}) GROUP BY doc_id, word"
# Three words in a row, from the list of the words of a document.
SEQUENCES = f"""
    SELECT sequence, count(*) AS count FROM (
        SELECT unnest(list_transform(range(1, len(words) - 1),
            lambda i: words[i] || ' ' || words[i + 1] || ' ' || words[i + 2])) AS sequence
        FROM (SELECT regexp_extract_all(text, '{WORD}') AS words FROM docs))
    GROUP BY sequence"""
INDEXED = """
    SELECT word, count(*) AS doc_count, list_sort(list(doc_id)) AS doc_ids FROM ({}) GROUP BY word"""

# Scores are compared as whole millionths, so that the last bits of a logarithm do not matter.
SCORED = """
    SELECT doc_id, word, count AS tf, df, CAST(round(1e6 * count * ln(num_docs / df)) AS BIGINT) AS score
    FROM (SELECT *, count(*) OVER (PARTITION BY word) AS df FROM ({}))
    CROSS JOIN (SELECT count(*) AS num_docs FROM docs)"""
# Each word with the four words behind it.
PAIRS = f"""
    SELECT least(a, b) AS word1, greatest(a, b) AS word2, count(*) AS count FROM (
        SELECT unnest(words[:len(words) - d]) AS a, unnest(words[1 + d:]) AS b
        FROM (SELECT regexp_extract_all(text, '{WORD}') AS words FROM docs),
        (SELECT unnest(range(1, 5)) AS d) WHERE len(words) > d)
    GROUP BY ALL"""

# Queries for DuckDB, of which the fastest counts. It depends on the corpus: line by line is twice as fast for
# a few large documents and slower for many small ones.
DUCKDB_WAYS = {
    "word_count": [COUNTED.format(DOCS_WORDS), COUNTED.format(LINES_WORDS)],
    "inverted_index": [
        INDEXED.format(f"""
            SELECT doc_id, unnest(list_distinct(regexp_extract_all(text, '{WORD}'))) AS word FROM docs"""),
        INDEXED.format(f"SELECT DISTINCT doc_id, word FROM ({DOCS_WORDS})"),
        INDEXED.format(f"SELECT DISTINCT doc_id, word FROM ({LINES_WORDS})"),
    ],
    "term_vector": [VECTORS.format(DOCS_WORDS), VECTORS.format(LINES_WORDS)],
    "tfidf": [SCORED.format(VECTORS.format(words)) for words in (DOCS_WORDS, LINES_WORDS)],
    "sequence_count": [SEQUENCES],
    "cooccurrence": [PAIRS],
}
# Columns of our rows that are compared, if not all of them.
COMPARED = {"tfidf": "doc_id, word, tf, df, CAST(round(1e6 * score) AS BIGINT) AS score"}
# Queries for one row that reads every column. {rows} is the relation.
DIGEST = {
    "word_count": "SELECT count(*), sum({num_bytes}(word)), sum(count) FROM {rows}",
    "term_vector": "SELECT count(*), sum({num_bytes}(word)), sum(count) FROM {rows}",
    "sequence_count": "SELECT count(*), sum({num_bytes}(sequence)), sum(count) FROM {rows}",
    "tfidf": "SELECT count(*), sum({num_bytes}(word)), sum(tf), sum(df), sum(doc_id) FROM {rows}",
    "cooccurrence": "SELECT count(*), sum({num_bytes}(word1)), sum({num_bytes}(word2)), sum(count) FROM {rows}",
    "inverted_index": "SELECT count(*), sum({num_bytes}(word)), sum(doc_count), "
                      "sum(doc_ids[1]), sum({list_len}(doc_ids)) FROM {rows}",
}


class DuckDb:
    """DuckDB over a table in memory."""

    name = "DuckDB"

    def __init__(self, docs):
        import duckdb
        import pyarrow

        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {NUM_THREADS}")
        # A DuckDB thread takes whole row groups (122,880 documents), so one table would leave all
        # threads but one idle. A table for each thread, with equal bytes, keeps them busy.
        for part, rows in enumerate(halves(docs)):
            self.connection.register("loaded", pyarrow.table({
                "doc_id": pyarrow.array([i for i, _, _ in rows], pyarrow.int64()),
                "path": pyarrow.array([path for _, path, _ in rows], pyarrow.string()),
                "text": pyarrow.array([text for _, _, text in rows], pyarrow.large_string())}))
            self.connection.execute(f"CREATE TABLE docs{part} AS SELECT * FROM loaded")
            self.connection.unregister("loaded")
        self.connection.execute("CREATE VIEW docs AS FROM docs0 UNION ALL FROM docs1")

    def run(self, task):
        """Runs a task and returns the seconds of each run, and the digest."""
        runs = []
        for way in DUCKDB_WAYS[task]:
            query = DIGEST[task].format(rows=f"({way})", num_bytes="strlen", list_len="len")
            runs.append(timed(lambda: self.connection.execute(query).fetchone()))
        return min(runs, key=lambda run: min(run[0][1:]))


def halves(docs):
    """Returns the documents in two parts with about the same number of characters."""
    rest = sum(len(text) for _, _, text in docs) / 2
    for at, (_, _, text) in enumerate(docs):
        rest -= len(text)
        if rest <= 0:
            return docs[:at + 1], docs[at + 1:]
    return docs, []


class Polars:
    """Polars over a frame in memory. Its regex is Rust's, so it needs no spelled-out class."""

    name = "Polars"

    def __init__(self, docs):
        import polars

        self.pl = polars
        self.frame = polars.DataFrame({"doc_id": [i for i, _, _ in docs],
                                       "text": [text for _, _, text in docs]})

    def run(self, task):
        """Runs a task and returns the seconds of each run, and the digest."""
        return timed(lambda: getattr(self, task)().collect().row(0))

    def words(self):
        """Returns a row for each document: its id and the list of its words."""
        return self.frame.lazy().select("doc_id", word=self.pl.col("text").str.extract_all(r"\w+"))

    def word_count(self):
        pl = self.pl
        words = self.words().select("word").explode("word").drop_nulls()
        counts = words.group_by("word").agg(count=pl.len())
        return counts.select(pl.len().alias("rows"), pl.col("word").str.len_bytes().sum(),
                             pl.col("count").sum())

    def term_vector(self):
        pl = self.pl
        words = self.words().explode("word").drop_nulls()
        counts = words.group_by("doc_id", "word").agg(count=pl.len())
        return counts.select(pl.len().alias("rows"), pl.col("word").str.len_bytes().sum(),
                             pl.col("count").sum())

    def sequence_count(self):
        pl = self.pl
        words = self.words().explode("word").drop_nulls()
        following = [pl.col("word").shift(-i).over("doc_id") for i in range(1, 3)]
        words = words.select(sequence=pl.concat_str(["word", *following], separator=" "))
        counts = words.drop_nulls().group_by("sequence").agg(count=pl.len())
        return counts.select(pl.len().alias("rows"), pl.col("sequence").str.len_bytes().sum(),
                             pl.col("count").sum())

    def inverted_index(self):
        pl = self.pl
        pairs = self.words().with_columns(pl.col("word").list.unique()).explode("word").drop_nulls()
        index = pairs.group_by("word").agg(doc_ids=pl.col("doc_id").sort())
        lengths = pl.col("doc_ids").list.len().sum()
        return index.select(pl.len().alias("rows"), pl.col("word").str.len_bytes().sum(),
                            lengths.alias("doc_count"),
                            pl.col("doc_ids").list.first().sum().alias("first"),
                            lengths.alias("postings"))


class Tadoc:
    """`tadoc sql`, with the times that its session prints."""

    name = "tadoc"

    def __init__(self, binary, folder, temp):
        self.binary, self.corpus = binary, os.path.join(temp, "corpus.tadoc")
        subprocess.run([binary, "ingest", stage(folder, temp), "-o", self.corpus], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def sql(self, *statements):
        """Runs the statements in one session and returns its output."""
        # The cores answer, as for the peers.
        statements = ("SET tadoc.device = 'cpu'", *statements)
        arguments = [argument for statement in statements for argument in ("-c", statement)]
        environment = {**os.environ, "RAYON_NUM_THREADS": str(NUM_THREADS)}
        done = subprocess.run([self.binary, "sql", "--format", "csv", *arguments], text=True,
                              env=environment, capture_output=True)
        if done.returncode != 0:
            raise SystemExit(f"tadoc sql failed: {done.stderr}")
        return done.stdout + done.stderr

    def run(self, task):
        """Runs a task and returns the seconds of each run, and the digest."""
        query = DIGEST[task].format(rows=f"{task}('{self.corpus}')", num_bytes="octet_length",
                                    list_len="cardinality")
        output = self.sql(*[query] * NUM_RUNS)
        # Standard error has `1 row, 4.56 ms` or `1 row, 1.23 s` behind each statement.
        times = re.findall(r"^1 row, ([0-9.]+) (ms|s)$", output, re.MULTILINE)
        seconds = [float(number) / (1000 if unit == "ms" else 1) for number, unit in times]
        digest = next(line for line in output.splitlines() if re.fullmatch(r"[0-9,]+", line))
        return seconds, tuple(int(number) for number in digest.split(","))

    def export(self, task, out):
        """Writes the full result as Parquet."""
        columns = COMPARED.get(task, "*")
        self.sql(f"COPY (SELECT {columns} FROM {task}('{self.corpus}')) TO '{out}' STORED AS PARQUET")


def timed(query):
    """Runs a query and returns the seconds of each run and its answer as integers."""
    seconds = []
    for _ in range(NUM_RUNS):
        start = time.perf_counter()
        answer = query()
        seconds.append(time.perf_counter() - start)
    return seconds, tuple(int(value) for value in answer)


def num_different_rows(duckdb, tadoc, task, temp):
    """Returns the number of rows that only one of the two full results has."""
    out = os.path.join(temp, f"{task}.parquet")
    tadoc.export(task, out)
    ours, theirs = f"SELECT * FROM '{out}'", DUCKDB_WAYS[task][0]
    query = (f"SELECT count(*) FROM ((({ours}) EXCEPT ({theirs})) UNION ALL "
             f"(({theirs}) EXCEPT ({ours})))")
    return duckdb.connection.execute(query).fetchone()[0]


def measure(folder, binary, with_polars, tasks):
    """Prints the Markdown rows of the tasks on one corpus."""
    name = os.path.basename(os.path.normpath(folder))
    docs = [(i, path, text_of(data)) for i, (path, data) in enumerate(read_documents(folder))]
    num_bytes = sum(len(text.encode()) for _, _, text in docs)
    with tempfile.TemporaryDirectory() as temp:
        engines = [DuckDb(docs)] + ([Polars(docs)] if with_polars else [])
        del docs
        tadoc = Tadoc(binary, folder, temp) if binary else None
        for task in tasks:
            asked = [engine for engine in engines if not isinstance(engine, Polars) or hasattr(engine, task)]
            results = {engine.name: engine.run(task) for engine in asked + ([tadoc] if tadoc else [])}
            warm = {engine: min(seconds[1:]) for engine, (seconds, _) in results.items()}
            for engine, (seconds, digest) in results.items():
                ratio = f"{warm['DuckDB'] / max(warm[engine], 1e-9):.1f}x"
                same = "yes" if digest == results["DuckDB"][1] else f"NO: {digest}, {results['DuckDB'][1]}"
                if engine == "tadoc":
                    different = num_different_rows(engines[0], tadoc, task, temp)
                    same = f"{different:,} rows differ" if different else "yes, every row"
                print(f"| {name} | {num_bytes / 1e6:.1f} | {task} | {engine} | {seconds[0]:.4f} "
                      f"| {warm[engine]:.4f} | {ratio} | {same} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--tadoc", help="the tadoc binary; without it only the peers are measured")
    parser.add_argument("--no-polars", action="store_true")
    parser.add_argument("--tasks", default=",".join(DUCKDB_WAYS), help="which, with commas between them")
    args = parser.parse_args()
    print("| corpus | MB | task | engine | first s | warm s | DuckDB / engine | equal to DuckDB |")
    print("| --- | ---: | --- | --- | ---: | ---: | ---: | --- |")
    for folder in args.folders:
        measure(folder, args.tadoc, not args.no_polars, args.tasks.split(","))


if __name__ == "__main__":
    main()
