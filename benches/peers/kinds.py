#!/usr/bin/env python3
"""Makes folders of text of seven kinds for `ingest.py`: small files, sources, prose, revisions, logs, JSON lines, chat.

Claim it supports: the rows of `ingest.py` for each kind of text.

    python3 benches/peers/kinds.py --corpora ../shared/corpora --out /tmp/kinds [--mb 100] [--sources FOLDER]
    python3 benches/peers/ingest.py /tmp/kinds/{small,sources,prose,revisions} lines:/tmp/kinds/{logs,json,chat}

The texts are those of `--corpora`, and Python or Rust sources of this machine. A corpus is smaller than is asked, so
there are copies of it. In each copy three letters of the alphabet (of lines: the ten digits) are exchanged, other ones
for each copy, so that most words or numbers of a copy are its own. Chat has the sentences of the questions and answers
of the JSON lines, one message a line, with a time, a channel and a name. Of small files there is half as much, because
they take some peers so long.
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import string

from documents import document_paths

SUFFIXES = (".py", ".rs", ".h", ".c", ".md", ".toml", ".pyi", ".hpp")


def exchange(data, copy, alphabet, num):
    """Returns the bytes with `num` letters of an alphabet in another order, the same for each copy."""
    if copy == 0:
        return data
    chosen = random.Random(copy).sample(alphabet, num)
    return data.translate(bytes.maketrans("".join(chosen).encode(), "".join(chosen[1:] + chosen[:1]).encode()))


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def read_all(folder):
    """Returns (path, bytes) of all documents of a folder."""
    paths = document_paths(folder)
    return [(path, open(os.path.join(folder, path), "rb").read()) for path in paths if not path.endswith("LICENSE")]


def copies(job):
    """Writes one copy of the documents."""
    documents, out, copy, alphabet, num = job
    for path, data in documents:
        write(os.path.join(out, f"copy-{copy:02}", path), exchange(data, copy, alphabet, num))


def chat(documents):
    """Returns one document with a message for each sentence."""
    names = ["ada", "bob", "chen", "dora", "emil", "fatima", "goran", "hana"]
    picks = random.Random(7)
    time = 1_714_979_289
    lines = []
    for _, data in documents:
        for row in data.splitlines():
            values = json.loads(row)
            for sentence in re.split(r"(?<=[.?!])\s|\n", values["question"] + "\n" + values["answer"]):
                time += picks.randrange(1, 90)
                message = {"ts": time, "channel": picks.randrange(40), "user": picks.choice(names), "text": sentence}
                lines.append(json.dumps(message))
    return [("chat.jsonl", ("\n".join(lines) + "\n").encode())]


def sources(folder, out, num_bytes):
    """Copies source files of a folder of this machine."""
    total = 0
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(parent, name)
            is_file = name.endswith(SUFFIXES) and os.path.isfile(path) and not os.path.islink(path)
            if total >= num_bytes or not is_file or os.path.getsize(path) > 1 << 20:
                continue
            with open(path, "rb") as file:
                data = file.read()
            write(os.path.join(out, os.path.relpath(path, folder).lstrip(".")), data)
            total += len(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", required=True)
    parser.add_argument("--sources", default=os.path.expanduser("~/.cargo/registry/src"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--mb", type=int, default=100)
    arguments = parser.parse_args()
    num_bytes = arguments.mb * 1_000_000
    corpora = {name: read_all(os.path.join(arguments.corpora, name)) for name in sorted(os.listdir(arguments.corpora))}
    json_lines = [(path, data) for path, data in corpora["c-gsm8k"] if path.endswith(".jsonl")]
    kinds = {
        "small": (corpora["a-tldr"] + corpora["a-vba-docs"], string.ascii_lowercase, 3),
        "prose": (corpora["b-gutenberg-authors"], string.ascii_lowercase, 3),
        "revisions": (corpora["e-peps-revisions"], string.ascii_lowercase, 3),
        "logs": (corpora["d-logs"], string.digits, 10),
        "json": (json_lines, string.digits, 10),
        "chat": (chat(json_lines), string.digits, 10),
    }
    jobs = []
    for kind, (documents, alphabet, num) in kinds.items():
        out = os.path.join(arguments.out, kind)
        wanted = num_bytes // 2 if kind == "small" else num_bytes
        num_copies = -(-wanted // sum(len(data) for _, data in documents))
        jobs += [(documents, out, copy, alphabet, num) for copy in range(num_copies)]
    with multiprocessing.Pool() as pool:
        copied = pool.map_async(copies, jobs, chunksize=1)
        sources(arguments.sources, os.path.join(arguments.out, "sources"), num_bytes)
        copied.get()
    for kind in [*kinds, "sources"]:
        paths = document_paths(os.path.join(arguments.out, kind))
        total = sum(os.path.getsize(os.path.join(arguments.out, kind, path)) for path in paths)
        print(f"{kind}: {len(paths):,} files, {total:,} bytes")


if __name__ == "__main__":
    main()
