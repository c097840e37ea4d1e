#!/usr/bin/env python3
"""Measures documents that change, in a Tantivy index (delete and add again) and through SQL statements.

Claims it supports: "edits and reads of random documents, a fifth of each operation, beside Tantivy", and
the rates of INSERT, UPDATE, DELETE and INSERT INTO "d$edits".

    TADOC_CORPORA=../shared/corpora cargo bench --bench edits -- dump /tmp/edits
    TADOC_CORPORA=../shared/corpora cargo bench --bench edits -- mixes
    pip install --target /tmp/tantivy tantivy
    PYTHONPATH=/tmp/tantivy python3 benches/peers/edits.py mixes /tmp/edits/a-tldr --operations 20000
    python3 benches/peers/edits.py statements /tmp/edits/a-tldr --tadoc target/release/tadoc

Method. `mixes` runs the same operations as the bench, over the same documents, and compares the sum of all
lengths, counts and hits with the sum in the file. An inverted index has no bytes and no byte offsets, so the
index keeps each document's bytes beside its words. A read fetches the document by its id. Count and search
ask for the document by its id and the word, and scan its bytes if there is an answer. An edit deletes the
document and adds it again with its new text. Edits show only after a commit, so a read of an edited document
commits first; other edits wait. The index lies in memory and has one writer thread.

The calls come from Python. Two figures show the cost of that: an empty call of the index, and the same loop
over plain `bytes` objects, which do little work. Our bench is called from Rust. The difference of the two
figures is the cost of Tantivy itself. Times are processor times over all threads of the process; the bench
has one thread.

`statements` makes a living corpus of the documents in a temporary folder and runs each statement once in a
process of its own. The time of a process that runs `SELECT 1` on the same table is subtracted. Rows are the
number that the statement reports. Every statement is a durable commit. A statement after which the corpus is
optimized includes the time of that.
"""

import argparse
import os
import subprocess
import tempfile
import time

WORD_BYTES = frozenset(bytes([byte]) for byte in range(256)
                       if byte > 127 or chr(byte).isalnum() or byte == ord("_"))
EXTRACT_BYTES = 64
# Tantivy leaves longer tokens out. It may cut characters other than ASCII letters and digits in another way.
LONGEST_TOKEN = 39


def documents_of(folder):
    """Returns the bytes of the documents, in the order of their ids."""
    folder = os.path.join(folder, "documents")
    documents = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            documents.append(file.read())
    return documents


def operations_of(path):
    """Returns the expected sum, and operations as (kind, document, offset or None, bytes)."""
    with open(path, encoding="ascii") as file:
        total = int(file.readline().split("\t")[1])
        rows = [line.rstrip("\n").split("\t") for line in file]
    return total, [(kind, int(doc_id), int(offset) if offset else None, bytes.fromhex(text))
                   for kind, doc_id, offset, text in rows]


def num_places(text, word):
    """Counts the places of the word in the text without a letter, digit or `_` beside it."""
    count, at = 0, text.find(word)
    while at >= 0:
        end = at + len(word)
        count += (text[max(at - 1, 0):at] not in WORD_BYTES and text[end:end + 1] not in WORD_BYTES)
        at = text.find(word, end)
    return count


class PlainStore:
    """Documents as `bytes`, to measure the cost of the loop in Python."""

    name = "bytes objects"

    def __init__(self, documents):
        self.documents = list(documents)

    def read(self, doc_id):
        """Returns the document's bytes."""
        return self.documents[doc_id]

    def read_with(self, doc_id, _word):
        """Returns the document's bytes, if the word may be in it."""
        return self.documents[doc_id]

    def replace(self, doc_id, data):
        """Replaces the document's bytes."""
        self.documents[doc_id] = data


class TantivyStore:
    """Documents in an index of words that keeps their bytes."""

    name = "Tantivy"

    def __init__(self, documents):
        import tantivy

        self.tantivy = tantivy
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("doc_id", stored=False, indexed=True)
        builder.add_bytes_field("content", stored=True)
        # The index has no positions, because offsets in bytes do not follow from them.
        builder.add_text_field("text", stored=False, index_option="freq")
        self.schema = builder.build()
        self.index = tantivy.Index(self.schema)
        self.writer = self.index.writer(heap_size=256 << 20, num_threads=1)
        self.edited = set()
        self.num_commits = 0
        for doc_id, data in enumerate(documents):
            self._add(doc_id, data)
        self._commit()

    def _add(self, doc_id, data):
        document = self.tantivy.Document()
        document.add_integer("doc_id", doc_id)
        document.add_bytes("content", data)
        document.add_text("text", data.decode("utf-8", errors="replace"))
        self.writer.add_document(document)

    def _commit(self):
        self.writer.commit()
        self.index.reload()
        self.searcher = self.index.searcher()
        self.edited.clear()
        self.num_commits += 1

    def _id_query(self, doc_id):
        return self.tantivy.Query.term_query(self.schema, "doc_id", doc_id)

    def _fetch(self, query):
        hits = self.searcher.search(query, 1, count=False).hits
        return self.searcher.doc(hits[0][1])["content"][0] if hits else None

    def read(self, doc_id):
        """Returns the document's bytes."""
        if doc_id in self.edited:
            self._commit()
        return self._fetch(self._id_query(doc_id))

    def read_with(self, doc_id, word):
        """Returns the document's bytes if the word may be in it, which the index knows without a read."""
        if not word.isalnum() or len(word) > LONGEST_TOKEN:
            return self.read(doc_id)
        if doc_id in self.edited:
            self._commit()
        word = self.tantivy.Query.term_query(self.schema, "text", word.decode().lower())
        must = self.tantivy.Occur.Must
        both = [(must, self._id_query(doc_id)), (must, word)]
        return self._fetch(self.tantivy.Query.boolean_query(both)) or b""

    def replace(self, doc_id, data):
        """Deletes the document and adds it again."""
        self.writer.delete_documents_by_term("doc_id", doc_id)
        self._add(doc_id, data)
        self.edited.add(doc_id)


def run(store, in_batch, operations):
    """Runs the operations and returns the sum of lengths, counts and hits."""
    total, inserts = 0, {}
    first_lens = {}
    for kind, doc_id, offset, data in operations:
        if kind == "extract":
            total += len(store.read(doc_id)[offset:offset + EXTRACT_BYTES])
        elif kind in ("search", "count"):
            total += num_places(store.read_with(doc_id, data), data)
        else:
            text = store.read(doc_id)
            length = first_lens.setdefault(doc_id, len(text)) if in_batch else len(text)
            at = length if offset is None else offset
            if in_batch:
                before = inserts.setdefault(doc_id, [])
                place = at + sum(size for earlier, size in before if earlier <= at)
                before.append((at, len(data)))
                at = place
            store.replace(doc_id, text[:at] + data + text[at:])
    return total


def nanos_of_an_empty_call(store):
    """Returns the nanoseconds of a call of the index that does nothing."""
    num_calls = 1_000_000
    searcher = store.searcher
    started = time.process_time()
    for _ in range(num_calls):
        searcher.num_docs
    return (time.process_time() - started) / num_calls * 1e9


def measure_mixes(folder, num_operations):
    """Prints the Markdown rows of the mixes of one corpus."""
    documents = documents_of(folder)
    name = os.path.basename(folder)
    print(f"| {name} | operations | bytes objects, µs each | Tantivy, µs each | commits |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".tsv")):
        expected, operations = operations_of(os.path.join(folder, name))
        is_whole = num_operations >= len(operations)
        operations = operations[:num_operations]
        micros, totals = [], []
        for store_type in (PlainStore, TantivyStore):
            store = store_type(documents)
            started = time.process_time()
            totals.append(run(store, name.startswith("in_batch"), operations))
            micros.append((time.process_time() - started) / len(operations) * 1e6)
        if totals[0] != totals[1] or is_whole and totals[0] != expected:
            raise SystemExit(f"{name}: sums differ: {totals}, expected {expected}")
        print(f"| {name[:-4]} | {len(operations):,} | {micros[0]:.2f} | {micros[1]:.1f} "
              f"| {store.num_commits - 1:,} |", flush=True)
    print(f"\nAn empty call of the index: {nanos_of_an_empty_call(store):.0f} ns")


def costs_of(tadoc, corpus, statement):
    """Runs the statement on the corpus `d` in a process. Returns its seconds, its processor seconds, and the number
    of rows that it changed."""
    table = f"CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{corpus}'"
    command = [tadoc, "sql", "-q", "--format", "csv", "-c", table, "-c", statement]
    before, started = os.times(), time.perf_counter()
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    after, seconds = os.times(), time.perf_counter() - started
    cpu_seconds = after.children_user - before.children_user + after.children_system - before.children_system
    return seconds, cpu_seconds, int(ran.stdout.split()[-1])


def measure_statements(folder, tadoc):
    """Prints the Markdown rows of the statements of one corpus."""
    documents = os.path.join(folder, "documents")
    num_docs = len(os.listdir(documents))
    one_of_ten = "WHERE doc_id % 10 = "
    statements = [
        ("INSERT of 100,000 rows of 100 bytes", "INSERT INTO d (path, text) SELECT 'p' || value, "
         "repeat('to be or ' || value || ' ', 6) FROM generate_series(1, 100000)"),
        ("INSERT of one row", "INSERT INTO d (path, text) VALUES ('one', 'to be or not to be')"),
        ("UPDATE of every 10th document", f"UPDATE d SET text = text || ' more' {one_of_ten} 3"),
        ("UPDATE of one", "UPDATE d SET text = text || ' more' WHERE doc_id = 1"),
        ('INSERT INTO "d$edits" of 100,000 texts', 'INSERT INTO "d$edits" (doc_id, pos, text) SELECT '
         f"value * 10 % {num_docs // 10 * 10} + 1, 0, 'to be or not ' FROM generate_series(1, 100000)"),
        ('INSERT INTO "d$edits" of one', 'INSERT INTO "d$edits" (doc_id, pos, text) VALUES (1, 0, \'a\')'),
        ("DELETE of every 10th document", f"DELETE FROM d {one_of_ten} 7"),
        ("DELETE of one", "DELETE FROM d WHERE doc_id = 2"),
    ]
    name = os.path.basename(folder)
    print(f"| {name}, {num_docs:,} documents | rows | ms | ms of the processor | rows a second |")
    print("| --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as temp:
        corpus = os.path.join(temp, "corpus")
        ingest = [tadoc, "ingest", documents, "-o", corpus, "--append", "-q"]
        subprocess.run(ingest, check=True)
        for name, statement in statements:
            idle = [costs_of(tadoc, corpus, "SELECT 1") for _ in range(5)]
            idle_seconds, idle_cpu = min(run[0] for run in idle), min(run[1] for run in idle)
            seconds, cpu, num_rows = costs_of(tadoc, corpus, statement)
            seconds, cpu = max(seconds - idle_seconds, 1e-3), max(cpu - idle_cpu, 0)
            print(f"| {name} | {num_rows:,} | {seconds * 1e3:.0f} | {cpu * 1e3:.0f} "
                  f"| {num_rows / seconds:,.{0 if num_rows > 1 else 1}f} |", flush=True)
        print(f"\nA process that runs SELECT 1: {idle_seconds * 1e3:.0f} ms")


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["mixes", "statements"])
    parser.add_argument("folder", help="a corpus that the bench has dumped")
    parser.add_argument("--operations", type=int, default=100_000, help="only the first N of a mix")
    parser.add_argument("--tadoc", default="target/release/tadoc")
    arguments = parser.parse_args()
    folder = arguments.folder.rstrip("/")
    if arguments.what == "mixes":
        measure_mixes(folder, arguments.operations)
    else:
        measure_statements(folder, os.path.abspath(arguments.tadoc))


if __name__ == "__main__":
    main()
