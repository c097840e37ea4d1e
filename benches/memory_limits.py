#!/usr/bin/env python3
"""Tests `tadoc sql --memory-limit`: the peak resident memory of a process for each statement and limit.

Claim it supports: a statement takes at most 1.25 times its limit plus 64 MiB of memory, measured by the operating
system, and answers as it does without a limit. Otherwise it fails with an error that names the least limit, and that
limit is enough.

    python3 benches/memory_limits.py --tadoc target/release/tadoc --megabytes 660
    python3 benches/memory_limits.py --tadoc target/release/tadoc --megabytes 80 --limits 64 --only "sum(length|DISTINCT"

Method. The script makes the text from a fixed seed: log lines of few templates, prose of words by rank, documents of a
line and of some megabytes. It adds the files of ../shared/corpora if they exist. Each statement is one process. Its peak
is `ru_maxrss`, less the resident code above 32 MiB, which a binary without optimization has. Every statement gives few
rows, and these must equal those of a run without limit. Exits with 1 if the rule is broken.
"""

import argparse
import itertools
import json
import os
import random
import re
import subprocess
import sys
import time

MIB = 1 << 20
CORPUS, OUT = "corpus.tadoc", "out"
# MiB of resident code of a release build. A build without optimization has more, which does not count as memory.
CODE = 32
# Names and statements. `{c}` is the corpus, `{d}` the folder of outputs, `{f}` the folder of plain files.
STATEMENTS = [
    ("base", "SELECT 1"),
    ("count(*)", "SELECT count(*) FROM documents('{c}')"),
    ("sum(bytes)", "SELECT sum(bytes), sum(words), count(DISTINCT path) FROM documents('{c}')"),
    ("sum(length(text))", "SELECT sum(length(text)) FROM documents('{c}')"),
    ("count(DISTINCT content)", "SELECT count(DISTINCT content) FROM documents('{c}')"),
    ("text LIKE", "SELECT count(*), sum(bytes) FROM documents('{c}') WHERE text LIKE '%ERROR%7%'"),
    ("filter above", "SELECT count(*) FROM documents('{c}') WHERE length(upper(text)) % 7 = 3"),
    ("ORDER BY text", "SELECT count(*), sum(length(l)) FROM "
     "(SELECT lag(text) OVER (ORDER BY text) AS l FROM documents('{c}') WHERE bytes < 100000)"),
    ("top 10 by text", "SELECT md5(text), length(text) FROM documents('{c}') ORDER BY text DESC LIMIT 10"),
    ("join on text", "SELECT count(*) FROM documents('{c}') a JOIN documents('{c}') b ON a.text = b.text "
     "WHERE a.bytes < 2000 AND b.bytes < 2000"),
    ("rows of text", "SELECT doc_id, text FROM documents('{c}')"),
    ("COPY gsst", "COPY (SELECT doc_id, text FROM documents('{c}')) TO '{d}/x.parquet' STORED AS GSST"),
    ("COPY parquet", "COPY (SELECT doc_id, text FROM documents('{c}')) TO '{d}/y.parquet' STORED AS PARQUET"),
    ("COPY tadoc", "COPY (SELECT path, text FROM documents('{c}') WHERE doc_id % 8 = 0) TO '{d}/z.tadoc' "
     "OPTIONS ('tadoc.block_bytes' '4194304')"),
    ("COPY csv", "COPY (SELECT doc_id, text FROM documents('{c}')) TO '{d}/z.csv' STORED AS CSV"),
    ("word_count", "SELECT count(*), sum(count) FROM word_count('{c}')"),
    ("word_count fold", "SELECT count(*), sum(count) FROM word_count('{c}', fold => true)"),
    ("word_sort", "SELECT word, count FROM word_sort('{c}') LIMIT 5 OFFSET 1000"),
    ("inverted_index", "SELECT count(*), sum(doc_count), sum(array_length(doc_ids)) FROM inverted_index('{c}')"),
    ("term_vector", "SELECT count(*), sum(count) FROM term_vector('{c}')"),
    ("tfidf", "SELECT count(*), sum(tf), sum(df) FROM tfidf('{c}')"),
    ("tfidf top", "SELECT count(*), sum(tf) FROM tfidf('{c}', top => 3)"),
    ("sequence_count", "SELECT count(*), sum(count), sum(length(sequence)) FROM sequence_count('{c}')"),
    ("sequence_count top", "SELECT sequence, count FROM sequence_count('{c}') ORDER BY count DESC, sequence LIMIT 10"),
    ("sequence_count n=2000", "SELECT count(*), sum(length(sequence)) FROM "
     "(SELECT * FROM sequence_count('{c}', n => 2000) LIMIT 20000)"),
    ("sequence_count by_doc", "SELECT count(*), sum(count) FROM sequence_count('{c}', by_doc => true)"),
    ("ranked_inverted_index", "SELECT count(*), sum(count) FROM ranked_inverted_index('{c}')"),
    ("cooccurrence", "SELECT count(*), sum(count) FROM cooccurrence('{c}', window => 2)"),
    ("repeated_phrases", "SELECT count(*), sum(count) FROM repeated_phrases('{c}', min_words => 12)"),
    ("search", "SELECT count(*), sum(byte_offset) FROM search('{c}', 'ERROR')"),
    ("term_count", "SELECT count(*), sum(count) FROM term_count('{c}', 'ERROR')"),
    ("kwic", "SELECT count(*), sum(length(\"left\")) FROM kwic('{c}', 'timeout')"),
    ("extract", "SELECT text FROM extract('{c}', 11, 5, 40)"),
    ("tokens", "SELECT count(*), max(word_id) FROM tokens('{c}')"),
    ("doc_term_matrix", "SELECT count(*) FROM doc_term_matrix('{c}')"),
    ("corpus_info", "SELECT count(*) FROM corpus_info('{c}')"),
    ("corpus_verify", "SELECT count(*) FROM corpus_verify('{c}')"),
    ("read_text", "SELECT count(*), sum(length(text)) FROM read_text('{f}/*.txt')"),
    ("read_lines", "SELECT count(*), sum(length(text)) FROM read_lines('{f}/*.txt')"),
]


class Text:
    """A generator of documents from a fixed seed."""

    def __init__(self):
        self.random = random.Random(7)
        letters = "etaoinshrdlucmfwypvbgkjqxz"
        weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(letters))))
        word = lambda: "".join(self.random.choices(letters, cum_weights=weights, k=self.random.randint(2, 11)))
        self.words = [word() for _ in range(60_000)]
        self.word_weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(self.words))))
        hosts = [f"node-{at:03}.example.net" for at in range(200)]
        levels = ["INFO"] * 12 + ["WARN"] * 3 + ["ERROR"]
        messages = ["connection from {} accepted", "request {} served", "cache miss for key {}",
                    "timeout after {} ms, retrying", "job {} finished", "checksum of block {} verified"]
        self.line_parts = hosts, levels, messages
        self.clock = 0
        self.sentences = [self.sentence() for _ in range(30_000)]

    def sentence(self):
        """Returns a sentence of words, chosen by rank."""
        words = self.random.choices(self.words, cum_weights=self.word_weights, k=self.random.randint(4, 22))
        return " ".join(words).capitalize() + "."

    def prose(self, num_sentences):
        """Returns sentences. Three of four of them also occur elsewhere."""
        picked = self.random.choices(self.sentences, k=num_sentences)
        return " ".join(old if self.random.random() < 0.75 else self.sentence() for old in picked)

    def log(self, num_lines):
        """Returns lines of few templates."""
        hosts, levels, messages = self.line_parts
        pick = self.random.choice
        lines = []
        for _ in range(num_lines):
            self.clock += self.random.randint(0, 3)
            message = pick(messages).format(self.random.randint(0, 5_000))
            minutes, hours = self.clock // 60, self.clock // 3600
            time = f"{hours // 24 % 28 + 1:02} {hours % 24:02}:{minutes % 60:02}:{self.clock % 60:02}"
            lines.append(f"{time} {pick(hosts)} {pick(levels)} {message}\n")
        return "".join(lines)

    def documents(self, num_bytes):
        """Yields documents of at least `num_bytes` together."""
        made, at = 0, 0
        while made < num_bytes:
            kind = at % 40
            if at % 4000 == 3999:
                text = self.log(30_000)
            elif kind < 12:
                text = self.log(self.random.randint(50, 600))
            elif kind < 24:
                text = self.prose(self.random.randint(25, 500))
            else:
                text = self.log(1) if kind % 2 else self.prose(self.random.randint(1, 5))
            made, at = made + len(text), at + 1
            yield text


def write_corpus(folder, megabytes, tadoc):
    """Writes the corpus and the plain files to `folder` if they are not there yet."""
    corpus, files = os.path.join(folder, CORPUS), os.path.join(folder, "files")
    if os.path.exists(corpus):
        return
    os.makedirs(files, exist_ok=True)
    rows = os.path.join(folder, "documents.jsonl")
    with open(rows, "w") as out:
        for at, text in enumerate(Text().documents(megabytes * 1_000_000)):
            out.write(json.dumps({"text": text}) + "\n")
            if at % 10 == 0:
                with open(os.path.join(files, f"{at % 400:04}.txt"), "a") as file:
                    file.write(text + "\n")
        shared = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "shared", "corpora")
        for path, _, names in sorted(os.walk(shared)):
            for name in sorted(names):
                with open(os.path.join(path, name), "rb") as file:
                    out.write(json.dumps({"text": file.read(8 * MIB).decode("utf-8", "replace")}) + "\n")
    subprocess.run([tadoc, "ingest", rows, "--documents", "jsonl:text", "-o", corpus], check=True)
    os.remove(rows)


def run(tadoc, statement, limit, folder):
    """Runs one process and returns rows, status, error, peak and code in MiB, and seconds."""
    command = [tadoc, "sql", "--quiet", "--format", "csv", "-c", statement]
    if limit is not None:
        command += ["--memory-limit", f"{limit}MiB"]
    out = os.path.join(folder, OUT)
    subprocess.run(["rm", "-rf", out], check=True)
    os.makedirs(out)
    start = time.monotonic()
    with open(os.path.join(out, "rows"), "wb") as rows, open(os.path.join(out, "error"), "wb") as errors:
        process = subprocess.Popen(command, stdout=rows, stderr=errors)
        code, ended = 0, 0
        while not ended:
            code = max(code, resident_code(process.pid))
            time.sleep(0.02)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    seconds = time.monotonic() - start
    with open(os.path.join(out, "error"), errors="replace") as file:
        error = file.read(100_000).strip()
    return digest(os.path.join(out, "rows")), status, error, usage.ru_maxrss / 1024, code, seconds


def resident_code(pid):
    """Returns the MiB of mapped files that are resident."""
    try:
        with open(f"/proc/{pid}/status") as file:
            found = re.search(r"RssFile:\s*(\d+)", file.read())
        return int(found.group(1)) / 1024 if found else 0
    except OSError:
        return 0


def digest(path):
    """Returns the sorted rows if they are few, or else their number of bytes: partitions come in any order."""
    if os.path.getsize(path) > 100_000:
        return f"{os.path.getsize(path)} bytes"
    with open(path, errors="replace") as file:
        return "\n".join(sorted(file.read().splitlines()))


def least_limit(error):
    """Returns the limit in MiB that an error names, or None."""
    named = re.search(r"--memory-limit (\d+)MiB", error)
    return int(named.group(1)) if named else None


def verdict(limit, ran, expected):
    """Returns the verdict on a run, and True if the rule is kept."""
    answer, status, error, peak, code, _ = ran
    if limit is not None and peak - max(0, code - CODE) > 1.25 * limit + 64:
        return "TOO MUCH", False
    if status != 0:
        named = least_limit(error)
        return (f"refused, names {named}" if named else "REFUSED"), named is not None
    if expected is not None and answer != expected:
        return "OTHER ROWS", False
    return "ok", True


def main():
    """Prints a row for each statement and limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tadoc", default="target/release/tadoc")
    parser.add_argument("--folder", default="/tmp/tadoc-memory")
    parser.add_argument("--megabytes", type=int, default=660)
    parser.add_argument("--limits", default="64,256,1024", help="MiB, with commas between")
    parser.add_argument("--only", default="", help="statements whose name matches this expression")
    parser.add_argument("--unchecked", action="store_true", help="no run without limit, no look at rows")
    parser.add_argument("--errors", action="store_true", help="write whole errors")
    arguments = parser.parse_args()
    tadoc, folder = os.path.abspath(arguments.tadoc), arguments.folder
    os.makedirs(folder, exist_ok=True)
    write_corpus(folder, arguments.megabytes, tadoc)
    names = {"c": os.path.join(folder, CORPUS), "d": os.path.join(folder, OUT), "f": os.path.join(folder, "files")}
    limits, num_broken = [int(limit) for limit in arguments.limits.split(",")], 0
    print(f"{'statement':<24}{'limit':>7}{'peak':>7}{'code':>6}{'ratio':>7}{'s':>7}  verdict", flush=True)
    for name, statement in STATEMENTS:
        if not re.search(arguments.only, name):
            continue
        expected = None
        for limit in ([] if arguments.unchecked else [None]) + limits:
            ran = run(tadoc, statement.format(**names), limit, folder)
            answer, status, error, peak, code, seconds = ran
            said, is_kept = verdict(limit, ran, expected)
            named = least_limit(error) if status != 0 and limit is not None else None
            if named:
                again = run(tadoc, statement.format(**names), named, folder)
                said_again, is_true = verdict(named, again, expected)
                said, is_kept = f"{said}: {said_again}, {again[3]:.0f}", is_true and again[1] == 0
            if limit is None:
                expected = answer if status == 0 else None
            ratio = "" if limit is None else f"{peak / limit:.2f}"
            num_broken += not is_kept
            print(f"{name:<24}{limit or 'none':>7}{peak:>7.0f}{code:>6.0f}{ratio:>7}{seconds:>7.1f}  {said}", flush=True)
            if error and (arguments.errors or not is_kept):
                print(f"    {error[:1000]}", flush=True)
    print(f"{num_broken} broken")
    sys.exit(1 if num_broken else 0)


if __name__ == "__main__":
    main()
