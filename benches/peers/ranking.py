#!/usr/bin/env python3
"""Measures the best ten documents by BM25, and counts of documents, beside Tantivy, on the same documents.

Claims it supports: "a ranked query, and a count, takes at most twice Tantivy's time from its second call on".

    pip install tantivy
    cargo build -p tadoc --example rank      (in src/tadoc)
    python3 benches/peers/ranking.py --rank target/debug/examples/rank --tadoc target/debug/tadoc FOLDER

Method. The documents of a folder become a corpus and an index of Tantivy in memory-mapped files, with its
`whitespace` tokenizer over the words of the corpus's profile, so that both know the same words. Words of
five frequencies, alone and in pairs, threes and fives joined by OR and AND, are asked for in a library call
each: `Ranker::rank`, then `LeafLists::term_count`, and `Searcher.search` of the Python package (its call
takes some microseconds more than Tantivy itself). The shortest of 20 calls counts, after a first one that
is printed, too. Pairs are joined by NOT for counts only. Tantivy stores the length of a document in one
byte, so places of documents with nearly equal scores may differ: of ten documents those that both have are
counted.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import tempfile
import time

import tantivy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rank", default="target/debug/examples/rank")
    parser.add_argument("--tadoc", default="target/debug/tadoc")
    arguments = parser.parse_args()
    files = sorted(path for path in arguments.folder.rglob("*") if path.is_file())
    texts = [path.read_bytes().decode("utf-8", "replace").replace("\0", " ") for path in files]
    words_of = [re.findall(r"\w+", text) for text in texts]
    queries = list(pick_queries(words_of))
    with tempfile.TemporaryDirectory() as temp:
        temp = pathlib.Path(temp)
        plain = temp / "plain"
        plain.mkdir()
        for number, text in enumerate(texts):
            (plain / f"{number:07}").write_text(text, newline="")
        corpus = temp / "texts.tadoc"
        subprocess.run([arguments.tadoc, "ingest", str(plain), "-o", str(corpus)], check=True, capture_output=True)
        run = subprocess.run([arguments.rank, str(corpus), *queries], check=True, capture_output=True, text=True)
        ours = [line.split("\t") for line in run.stdout.splitlines()]
        index = build_index(temp / "index", words_of)
        print(f"{len(texts)} documents, {sum(map(len, words_of))} words\n")
        print("| query | first, µs | later, µs | Tantivy, µs | later / Tantivy | same of ten |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for query, (_, first, later, best, *_) in zip(queries, ours):
            if " NOT " in query:
                continue
            theirs, seconds = ask(index, query)
            mine = [int(row.split(":")[0]) for row in best.split()]
            same = len(set(mine) & set(theirs))
            later = int(later) / 1e3
            print(f"| {query} | {int(first) / 1e3:.0f} | {later:.1f} | {seconds * 1e6:.1f} "
                  f"| {later / seconds / 1e6:.2f} | {same} of {len(theirs)} |")
        print("\n| count of documents | documents | first, µs | later, µs | Tantivy, µs | later / Tantivy |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for query, (*_, first, later, num_docs) in zip(queries, ours):
            theirs, seconds = count(index, query)
            if theirs != int(num_docs):
                raise SystemExit(f"{query}: {num_docs} documents, and {theirs} of Tantivy")
            later = int(later) / 1e3
            print(f"| {query} | {num_docs} | {int(first) / 1e3:.0f} | {later:.1f} | {seconds * 1e6:.1f} "
                  f"| {later / seconds / 1e6:.2f} |")


def pick_queries(words_of):
    """Yields words from rare to most frequent, and combinations of them."""
    df = collections.Counter(word for words in words_of for word in set(words) if word.isascii() and len(word) > 2)
    ranked = [word for word, _ in df.most_common() if word not in ("AND", "NOT", "NEAR")]
    picked = [ranked[min(at, len(ranked) - 1)] for at in (0, 20, 300, 3000, 20000)]
    yield from picked
    for number in (2, 3, 5):
        yield " OR ".join(picked[:number])
        yield " AND ".join(picked[:number])
    yield " NOT ".join(picked[:2])
    yield " NOT ".join(picked[2:4])


def build_index(folder, words_of):
    folder.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("number", stored=True)
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    index = tantivy.Index(builder.build(), path=str(folder))
    writer = index.writer(300_000_000, 1)
    for number, words in enumerate(words_of):
        writer.add_document(tantivy.Document(number=number, text=" ".join(words)))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


def parsed(index, query):
    """Returns a query of Tantivy, with words in quotes, so that none is an operator."""
    if " NOT " in query:
        kept, excluded = query.split(" NOT ")
        return index.parse_query(f'+text:"{kept}" -text:"{excluded}"', ["text"])
    joined = " AND " if " AND " in query else " OR "
    return index.parse_query(joined.join(f'text:"{word}"' for word in query.split(joined)), ["text"])


def ask(index, query):
    """Returns the numbers of the best ten documents, and seconds."""
    searcher, query = index.searcher(), parsed(index, query)
    found, seconds = shortest(lambda: searcher.search(query, 10, count=False))
    return [searcher.doc(address)["number"][0] for _, address in found.hits], seconds


def count(index, query):
    """Returns the number of documents, and seconds."""
    searcher, query = index.searcher(), parsed(index, query)
    found, seconds = shortest(lambda: searcher.search(query, 1, count=True))
    return found.count, seconds


def shortest(call):
    """Returns the answer of `call`, and the seconds of the shortest of 21 calls."""
    seconds = float("inf")
    for _ in range(21):
        start = time.perf_counter()
        answer = call()
        seconds = min(seconds, time.perf_counter() - start)
    return answer, seconds


if __name__ == "__main__":
    main()
