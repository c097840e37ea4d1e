#!/usr/bin/env python3
"""Measures statements of one process each, on files in all layouts, beside zstd and a search through its output.

Claims it supports: "a cold statement pays for what it touches" and the sizes of all layouts.

    python3 benches/peers/opening.py --tadoc target/debug/tadoc [--block-size 16MiB] FOLDER [FOLDER ...]

Method. The documents of a folder become a file in each layout, and one concatenated file for `zstd -3 --long=27`. Each
command runs --runs times in turn with the others, and the shortest run counts: wall time and processor time of the whole
process, and its largest resident memory. The page cache is warm. The peer of all searches is `zstd -dc
--long=27 | rg -c`, or `grep -c` where rg is missing, and that of writing all texts is `zstd -dc --long=27`.
Files are `rg -c` on the documents as plain files.
The words are taken from a document in the middle: its rarest word, three words in a row that are frequent
and rarely stand together, and the two words in a row that stand together most often, for `tadoc grep -c`. Answers of all layouts are compared. Bytes read are those of `EXPLAIN
ANALYZE`, the same from an object store, as a part of the file; footers are not among them.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time

from documents import concatenate, document_paths, stage


LAYOUTS = ("small", "indexed")


def measured(command):
    """Runs a command and returns a digest of its output, wall seconds, processor seconds and largest memory in MB.

    The output is not kept: a child's largest memory is at least that of its parent.
    """
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = hashlib.blake2b()
    while part := process.stdout.read(1 << 20):
        output.update(part)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"exit status {status}: {command}")
    return output.digest(), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def sample(folder, text):
    """Returns the path of a large document in the middle, a rare word, a rare phrase of three words, each
    of which is frequent, and the most frequent pair of words. `text` holds all documents end to end. The ten
    rarest of its first part are counted in all of it."""
    paths = document_paths(folder)
    large = (path for path in paths[len(paths) // 2 :] if os.path.getsize(os.path.join(folder, path)) > 1000)
    path = next(large)
    with open(os.path.join(folder, path), "rb") as file:
        data = file.read()
    with open(text, "rb") as file:
        part = file.read(256 << 20)
        rest = file.read()
    counted = functools.cache(lambda words: part.count(words) + rest.count(words))
    rarest = lambda all: sorted(all, key=lambda words: (part.count(words), words))[:10]
    words = sorted(set(re.findall(rb"(?<!\w)[a-z]{5,}(?!\w)", data)))
    rare = min(rarest(words), key=lambda word: (counted(word), word)).decode()
    phrases = sorted(set(re.findall(rb"(?<!\w)[A-Za-z]{2,} [A-Za-z]{2,} [A-Za-z]{2,}(?!\w)", data)))[:100]
    phrase = max(rarest(phrases), key=lambda phrase: min(counted(word) for word in phrase.split())).decode()
    pairs = sorted(set(re.findall(rb"(?<!\w)[a-z]{2,} [a-z]{2,}(?!\w)", data)))[:200]
    pair = max(pairs, key=lambda pair: (part.count(pair), pair)).decode()
    return path, rare, phrase, pair


def statements(path, rare, phrase):
    """Yields a name and SQL with {f} for the file."""
    name = os.path.basename(path).replace("'", "''")
    yield "search, phrase", f"SELECT count(*) FROM search('{{f}}', '\"{phrase}\"')"
    first, second, third = phrase.split()
    yield "term_count, frequent word", f"SELECT count(*), sum(count) FROM term_count('{{f}}', '{first}')"
    yield "rank, 3 words", f"SELECT path FROM rank('{{f}}', '{first} OR {second} OR {third}')"
    yield "search, frequent word, LIMIT 50", f"SELECT byte_offset FROM search('{{f}}', '\"{first}\"') LIMIT 50"
    yield "term_count, rare word", f"SELECT count(*) FROM term_count('{{f}}', '{rare}')"
    yield "search, no such word", "SELECT count(*) FROM search('{f}', 'xqzzyvk')"
    yield "documents by path", f"SELECT count(*), sum(bytes), sum(words) FROM documents('{{f}}') WHERE path LIKE '%{name}'"
    yield "text of a document by path", f"SELECT length(text) FROM documents('{{f}}') WHERE path LIKE '%{path}'"
    yield "extract 80 bytes", "SELECT text FROM extract('{f}', 0, 16, 80)"
    yield "word_count", "SELECT count(*), sum(count) FROM word_count('{f}')"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tadoc", default="target/debug/tadoc")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--block-size", default="128MiB", help="text of a segment")
    parser.add_argument("folders", nargs="+")
    arguments = parser.parse_args()
    grep = ["rg", "-c"] if shutil.which("rg") else ["grep", "-c", "-a", "-F"]
    print(f"peer: zstd -dc --long=27 | {grep[0]}; shortest of {arguments.runs}; {os.cpu_count()} cores\n")
    for folder in arguments.folders:
        with tempfile.TemporaryDirectory() as temp:
            compare(arguments, folder, temp, grep)


def compare(arguments, folder, temp, grep):
    text, packed = os.path.join(temp, "text"), os.path.join(temp, "text.zst")
    _, num_bytes = concatenate(folder, text)
    subprocess.run(["zstd", "-q", "-3", "--long=27", "-T1", text, "-o", packed], check=True)
    files = {layout: os.path.join(temp, layout + ".tadoc") for layout in LAYOUTS}
    documents = stage(folder, temp)
    for layout, file in files.items():
        options = ["--layout", layout, "--block-size", arguments.block_size, "--quiet"]
        subprocess.run([arguments.tadoc, "ingest", documents, "-o", file, *options], check=True)
    sizes = {name: os.path.getsize(file) for name, file in files.items()}
    of_zstd = {name: size / os.path.getsize(packed) for name, size in sizes.items()}
    print(f"**{os.path.basename(os.path.abspath(folder))}**, {num_bytes / 1e6:.0f} MB of text; "
          f"file / zstd: {', '.join(f'{layout} {of_zstd[layout]:.2f}' for layout in LAYOUTS)}\n")
    print("| statement | small / peer | indexed / peer | processor time, indexed / peer "
          "| memory small, indexed, MB | bytes read, indexed | indexed / files |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    # In a process of its own: a child's largest memory counts from that of its parent.
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        path, rare, phrase, pair = pool.submit(sample, folder, text).result()
    print(f"document {path}, word {rare}, phrase {phrase}, pair {pair}\n")
    for name, sql in statements(path, rare, phrase):
        needle = phrase.split()[0] if "frequent" in name else phrase if "phrase" in name else rare
        commands = {layout: [arguments.tadoc, "sql", "--quiet", "--format", "csv", "-c", sql.format(f=file)]
                    for layout, file in files.items()}
        commands |= peers(needle, packed, documents, grep)
        explain = [*commands["indexed"][:-1], f"EXPLAIN ANALYZE {commands['indexed'][-1]}"]
        read = f"{bytes_read(explain) / sizes['indexed']:.3f}"
        print_row(name, commands, arguments.runs, read)
    patterns = [("-c, rare word", "-c", rare), ("-c, frequent pair", "-c", pair), ("-l, frequent pair", "-l", pair),
                ("-n, phrase", "-n", phrase), ("-n, frequent pair", "-n", pair)]
    patterns += [("-c, alternation", "-c", "error|fail")] if grep[0] == "rg" else []
    for name, flag, pattern in patterns:
        commands = {layout: [arguments.tadoc, "grep", flag, pattern, file] for layout, file in files.items()}
        print_row(f"grep {name}", commands | peers(pattern, packed, documents, grep), arguments.runs)
    commands = {layout: [arguments.tadoc, "cat", file, "--all"] for layout, file in files.items()}
    print_row("cat --all", {**commands, "peer": ["zstd", "-dcq", "--long=27", packed]}, arguments.runs)
    print()


def peers(needle, packed, documents, grep):
    """Returns the commands that search for `needle` in the packed text and, with rg, in the plain files."""
    pipe = " ".join(grep) + f" '{needle}'"
    commands = {"peer": ["sh", "-c", f"zstd -dcq --long=27 {packed} | {pipe} || true"]}
    if grep[0] == "rg":
        commands["files"] = ["sh", "-c", f"rg -uu -j2 -c '{needle}' {documents} >{os.devnull} || true"]
    return commands


def bytes_read(explain):
    """Returns the bytes that a statement reads."""
    plan = subprocess.run(explain, check=True, capture_output=True, text=True).stdout
    found = re.findall(r"bytes_read=([\d.]+) ?([KMG]?)", plan)
    return sum(float(number) * 1000 ** " KMG".index(unit or " ") for number, unit in found)


def print_row(name, commands, runs, read=""):
    """Runs the commands in turn, compares the answers of all layouts, and prints a row of ratios."""
    best, answers = {}, {}
    for _ in range(runs):
        for who, command in commands.items():
            answers[who], *numbers = measured(command)
            best[who] = min(best.get(who, numbers), numbers)
    if len({answers[layout] for layout in LAYOUTS}) > 1:
        raise SystemExit(f"answers differ: {name}: {answers}"[:1000])
    peer, peer_busy = best["peer"][:2]
    walls = " | ".join(f"{best[layout][0] / peer:.2f}" for layout in LAYOUTS)
    memory = ", ".join(f"{best[layout][2]:.0f}" for layout in LAYOUTS)
    files = f"{best['indexed'][0] / best['files'][0]:.2f}" if "files" in best else ""
    print(f"| {name} | {walls} | {best['indexed'][1] / peer_busy:.2f} | {memory} | {read} | {files} |")


if __name__ == "__main__":
    main()
