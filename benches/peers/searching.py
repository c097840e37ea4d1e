#!/usr/bin/env python3
"""Measures counts of queries, lines of a literal, folds and collocates, warm, beside Tantivy, DuckDB and ripgrep.

Claims it supports: "boolean, NEAR and fuzzy counts take at most twice Tantivy's time", "NEAR is ten times as fast as
DuckDB", "a literal is found ten times as fast as by ripgrep", "a fold adds nothing after its first use", "collocates of
ten thousand hits take 50 ms".

    .ci/python --build && pip install target/wheels/datafusion_tadoc-*.whl tantivy duckdb     (and ripgrep as `rg`)
    python3 benches/peers/searching.py [--layout indexed] FOLDER

Method. The documents of a folder become a corpus, an index of Tantivy with positions (its `whitespace` tokenizer over the
words of the corpus's profile, so that both know the same words) and a table of DuckDB, which is one row a document. All
are open before the clock starts. Statements of ours are SQL text, planned each time. The shortest of --runs calls counts,
after a first one. Numbers of documents are compared: with Tantivy for words and boolean queries, with DuckDB for NEAR.
DuckDB's extension `fts` has no NEAR, so it filters the texts with one regular expression. Tantivy's phrase with a slop is
its nearest query to NEAR, and counts other moves of words.
"""

import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import datafusion_tadoc as tadoc
import duckdb
import tantivy

HITS_OF_COLLOCATES = 10_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--layout", default="indexed")
    arguments = parser.parse_args()
    files = sorted(path for path in arguments.folder.rglob("*") if path.is_file())
    texts = [path.read_bytes().decode("utf-8", "replace").replace("\0", " ") for path in files]
    known = {}
    words_of = [[known.setdefault(word, word) for word in re.findall(r"\w+", text)] for text in texts]
    print(f"{len(texts)} documents, {sum(map(len, texts)) / 1e6:.0f} MB, {sum(map(len, words_of))} words\n")
    with tempfile.TemporaryDirectory() as temp:
        bench = Bench(pathlib.Path(temp), texts, words_of, arguments)
        bench.queries()
        bench.literals()
        bench.folds()
        bench.collocates()


class Bench:
    def __init__(self, temp, texts, words_of, arguments):
        self.runs, self.words_of = arguments.runs, words_of
        self.plain = temp / "plain"
        self.plain.mkdir()
        for number, text in enumerate(texts):
            (self.plain / f"{number:07}").write_text(text, newline="")
        self.corpus = str(temp / "texts.tadoc")
        tadoc.ingest(str(self.plain), self.corpus, layout=arguments.layout)
        self.con = tadoc.connect()
        self.index = build_index(temp / "index", words_of)
        self.duck = duckdb.connect()
        self.duck.execute("SET threads = 2")
        self.duck.execute("CREATE TABLE docs (text VARCHAR)")
        for start in range(0, len(texts), 1000):
            self.duck.executemany("INSERT INTO docs VALUES (?)", [[text] for text in texts[start : start + 1000]])
        total = collections.Counter(word for words in words_of for word in words if word.isascii() and len(word) > 2)
        self.total = total
        self.ranked = [word for word, _ in total.most_common() if word not in ("AND", "NOT", "NEAR")]

    def word(self, at):
        return self.ranked[min(at, len(self.ranked) - 1)]

    def ours(self, sql):
        return self.timed(lambda: self.con.sql(sql.replace("@", f"'{self.corpus}'")).rows())

    def timed(self, ask):
        """Returns the answer, the seconds of the first call, and those of the shortest later call."""
        seconds = []
        for _ in range(self.runs + 1):
            start = time.perf_counter()
            answer = ask()
            seconds.append(time.perf_counter() - start)
        return answer, seconds[0], min(seconds[1:])

    def counted(self, query):
        (answer, first, later) = self.ours(f"SELECT count(*) FROM term_count(@, '{query}')")
        return answer[0][0], first, later

    def tantivy(self, query):
        searcher = self.index.searcher()
        return self.timed(lambda: searcher.search(query, 1, count=True).count)

    def queries(self):
        a, b, c, rare = self.word(30), self.word(200), self.word(2000), self.word(20000)
        parsed = lambda text: self.index.parse_query(text, ["text"])
        fuzzy = lambda word: tantivy.Query.fuzzy_term_query(self.index.schema, "text", word, 1)
        asked = [
            (a, parsed(f'"{a}"'), None),
            (f"{a} AND {b}", parsed(f'"{a}" AND "{b}"'), None),
            (f"{b} OR {c} OR {rare}", parsed(f'"{b}" OR "{c}" OR "{rare}"'), None),
            (f"{a} NOT {b}", parsed(f'+"{a}" -"{b}"'), None),
            (f"({a} OR {b}) {c}", parsed(f'("{a}" OR "{b}") AND "{c}"'), None),
            (f"{rare}~1", fuzzy(rare), None),
            (f"{c}~1", fuzzy(c), None),
            (f"NEAR({b} {c}, 10)", parsed(f'"{b} {c}"~10'), (b, c)),
            (f"NEAR({a} {b}, 10)", parsed(f'"{a} {b}"~10'), (a, b)),
        ]
        print("| count of documents | documents | ours, first, ms | later, ms | later / Tantivy | later / DuckDB |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for text, query, near in asked:
            count, first, later = self.counted(text)
            theirs, _, seconds = self.tantivy(query)
            if near is None and theirs != count:
                raise SystemExit(f"{text}: {count} documents, and {theirs} of Tantivy")
            ratio = ""
            if near:
                found, _, of_duck = self.near_in_duckdb(*near)
                ratio = f"{later / of_duck:.3f} ({found} documents)"
            print(f"| `{text}` | {count} | {first * 1e3:.1f} | {later * 1e3:.2f} | {later / seconds:.2f} | {ratio} |")
        _, _, floor = self.ours("SELECT count(*) FROM documents(@)")
        print(f"\nA statement that counts documents takes {floor * 1e3:.2f} ms.\n")

    def near_in_duckdb(self, one, other):
        gap = r"\W+(?:\w+\W+){0,10}?"
        pattern = rf"\b{one}{gap}{other}\b|\b{other}{gap}{one}\b"
        runs, self.runs = self.runs, 1
        answer = self.timed(
            lambda: self.duck.execute("SELECT count(*) FROM docs WHERE regexp_matches(text, ?)", [pattern]).fetchone()[0]
        )
        self.runs = runs
        return answer

    def literals(self):
        if not shutil.which("rg"):
            raise SystemExit("rg is missing; apt install ripgrep")
        print("| lines of a literal | lines | first, ms | later, ms | later / rg |\n| --- | ---: | ---: | ---: | ---: |")
        sentence = " ".join(self.words_of[len(self.words_of) // 2][:2])
        for literal in (self.word(20000), self.word(2000), self.word(200), self.word(20000)[1:-1], sentence):
            (answer, first, later) = self.ours(f"SELECT count(*) FROM grep(@, '{re.escape(literal)}')")
            command = ["rg", "--no-config", "-uuu", "-a", "-c", "-F", "--no-filename", literal, str(self.plain)]
            lines, _, seconds = self.timed(lambda: subprocess.run(command, capture_output=True, text=True).stdout)
            num_lines = sum(map(int, lines.split()))
            if num_lines != answer[0][0]:
                raise SystemExit(f"{literal}: {answer[0][0]} lines, and {num_lines} of rg")
            print(f"| `{literal}` | {num_lines} | {first * 1e3:.1f} | {later * 1e3:.2f} | {later / seconds:.3f} |")
        print()

    def folds(self):
        word = self.word(2000)
        _, _, plain = self.ours(f"SELECT count(*) FROM term_count(@, '{word}')")
        print("| fold of a word | first, ms | second, ms | later / without |\n| --- | ---: | ---: | ---: |")
        for fold in ("case", "accents", "case,accents", "stem:english"):
            sql = f"SELECT count(*) FROM term_count(@, '{word}', fold => '{fold}')".replace("@", f"'{self.corpus}'")
            seconds = []
            for _ in range(self.runs + 2):
                start = time.perf_counter()
                self.con.sql(sql).rows()
                seconds.append(time.perf_counter() - start)
            print(f"| `{fold}` | {seconds[0] * 1e3:.1f} | {seconds[1] * 1e3:.1f} | {min(seconds[2:]) / plain:.2f} |")
        print()

    def collocates(self):
        word = min(self.ranked[:20000], key=lambda word: abs(self.total[word] - HITS_OF_COLLOCATES))
        _, first, later = self.ours(f"SELECT * FROM collocates(@, '{word}')")
        print(f"collocates of `{word}`, {self.total[word]} hits: first {first * 1e3:.0f} ms, later {later * 1e3:.1f} ms")


def build_index(folder, words_of):
    folder.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="position")
    index = tantivy.Index(builder.build(), path=str(folder))
    writer = index.writer(300_000_000, 1)
    for words in words_of:
        writer.add_document(tantivy.Document(text=" ".join(words)))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


if __name__ == "__main__":
    main()
