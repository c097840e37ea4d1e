#!/usr/bin/env python3
"""Measures the tasks through `tadoc sql`: time by size and threads, and memory. These are the tables 3 and 4 of the
TADOC paper for our engine.

Claims it supports: "two threads at least 1.7 times one", "time grows linearly in the size of the grammar",
"memory at most 1.5 times the loaded corpus plus its output". It also splits first runs into the time to open and
the time to count.

    python3 benches/peers/scaling.py --tadoc target/release/tadoc --sizes-mb 10,100,1000 /tmp/tadoc-large
    python3 benches/peers/scaling.py --tadoc target/release/tadoc ../shared/corpora/d-logs

Method. The first documents of the folder up to each size are ingested. A task runs `--runs` times in one session for
each number of threads, on as many processors. Every query reads all columns of all its rows. "Warm" is the shortest run
after the first; "open" is the first run less "warm". Memory is the largest resident set of a process that asks once, with
two threads. Beside it stands the resident set of a process that opens the corpus and holds it (`search` of a word that it
lacks). "Output" is the size of the rows as Arrow arrays: 16 bytes and the bytes of the text for each text, 8 for each
number. gzip is level 6 over the documents one behind the other.
"""

import argparse
import os
import re
import subprocess
import tempfile
import zlib

from analytics import DIGEST
from documents import read_documents

TASKS = list(DIGEST) + ["ranked_inverted_index"]
# Numbers of text columns and of number columns of a task.
COLUMNS = {"word_count": (1, 1), "term_vector": (1, 2), "sequence_count": (1, 1), "tfidf": (1, 4),
           "cooccurrence": (2, 1), "inverted_index": (1, 1), "ranked_inverted_index": (1, 2)}
OPEN = "SELECT count(*) FROM search('{corpus}', 'thiswordisnowhere')"
RANKED = "SELECT count(*), sum(octet_length(sequence)), sum(doc_id), sum(count) FROM {rows}"


def query_of(task, corpus):
    """Returns the statement that reads every column of the task."""
    return DIGEST.get(task, RANKED).format(rows=f"{task}('{corpus}')", num_bytes="octet_length",
                                           list_len="cardinality")


def output_bytes(task, digest):
    """Returns the approximate bytes of the rows with this digest."""
    numbers = [int(number) for number in digest.split(",")]
    num_texts, num_numbers = COLUMNS[task]
    lists = 8 * numbers[-1] if task == "inverted_index" else 0
    return numbers[0] * (16 * num_texts + 8 * num_numbers) + sum(numbers[1:1 + num_texts]) + lists


def session(binary, statements, num_threads, memory=None):
    """Runs a session and returns the seconds of each statement, its output, and its largest resident set in MB."""
    processors = sorted(os.sched_getaffinity(0))[:num_threads]
    settings = [f"SET datafusion.execution.target_partitions = {num_threads}", "SET tadoc.device = 'cpu'"]
    settings += [f"SET tadoc.max_memory_bytes = '{memory}'"] if memory else []
    arguments = [part for statement in settings + statements for part in ("-c", statement)]
    environment = {**os.environ, "RAYON_NUM_THREADS": str(num_threads)}
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen([binary, "sql", "--format", "csv", *arguments], env=environment,
                                 stdout=out, stderr=subprocess.STDOUT,
                                 preexec_fn=lambda: os.sched_setaffinity(0, processors))
        _, status, usage = os.wait4(child.pid, 0)
        out.seek(0)
        output = out.read().decode()
    if status != 0:
        raise SystemExit(f"tadoc sql failed: {output}")
    # The output has `1 row, 4.56 ms` or `1 row, 1.23 s` behind each statement.
    times = re.findall(r"1 row, ([0-9.]+) (ms|s)$", output, re.MULTILINE)
    seconds = [float(number) / (1000 if unit == "ms" else 1) for number, unit in times]
    return seconds, output, usage.ru_maxrss / 1e3


def staged(folder, size_bytes, temp):
    """Writes the first documents up to `size_bytes` to a folder. Returns the folder, its bytes, and those of gzip."""
    out = os.path.join(temp, "documents")
    num_bytes = num_gzip_bytes = 0
    gzip = zlib.compressobj(6)
    for path, data in read_documents(folder):
        if num_bytes + len(data) > size_bytes > 0:
            break
        os.makedirs(os.path.dirname(os.path.join(out, path)), exist_ok=True)
        with open(os.path.join(out, path), "wb") as file:
            file.write(data)
        num_bytes += len(data)
        num_gzip_bytes += len(gzip.compress(data))
    return out, num_bytes, num_gzip_bytes + len(gzip.flush())


def measure(folder, size_bytes, binary, tasks, num_runs, memory):
    """Prints the Markdown rows of the tasks on one corpus. A `.tadoc` file is measured as it is."""
    with tempfile.TemporaryDirectory() as temp:
        corpus, num_gzip_bytes = folder, 0
        if not folder.endswith(".tadoc"):
            documents, _, num_gzip_bytes = staged(folder, size_bytes, temp)
            corpus = os.path.join(temp, "corpus.tadoc")
            subprocess.run([binary, "ingest", documents, "-o", corpus], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, facts, _ = session(binary, [f"SELECT * FROM corpus_info('{corpus}')"], 1)
        facts = dict(line.split(",", 1) for line in facts.splitlines() if "," in line)
        num_elements, file_bytes = int(facts["elements"]), int(facts["file_bytes"])
        num_bytes = int(facts["text_bytes"])
        gzip = f", text / gzip {num_bytes / num_gzip_bytes:.2f}" if num_gzip_bytes else ""
        print(f"\n{os.path.basename(os.path.normpath(folder))}: {num_bytes / 1e6:.1f} MB of text, "
              f"{facts['documents']} documents, {num_elements / 1e6:.2f} million elements; "
              f"text / file {num_bytes / file_bytes:.2f}{gzip}\n")
        print("| task | open ms | warm ms, 1 thread | 2 threads | ratio | ns an element | MB | opened | output "
              "| MB / both |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        _, _, opened_mb = session(binary, [OPEN.format(corpus=corpus)], 2, memory)
        for task in tasks:
            query = query_of(task, corpus)
            (one, _, _), (two, _, _) = (session(binary, [query] * num_runs, n, memory) for n in (1, 2))
            _, rows, peak_mb = session(binary, [query], 2, memory)
            digest = next(line for line in rows.splitlines() if re.fullmatch(r"[0-9,]+", line))
            output_mb = output_bytes(task, digest) / 1e6
            warm, warm_two = min(one[1:]), min(two[1:])
            print(f"| {task} | {1e3 * (one[0] - warm):.1f} | {1e3 * warm:.1f} | {1e3 * warm_two:.1f} "
                  f"| {warm / warm_two:.2f} | {1e9 * warm / num_elements:.1f} | {peak_mb:.0f} "
                  f"| {opened_mb:.0f} | {output_mb:.0f} | {peak_mb / (opened_mb + output_mb):.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--tadoc", required=True, help="the tadoc binary")
    parser.add_argument("--sizes-mb", default="0", help="how much of each folder, 0 for all of it")
    parser.add_argument("--tasks", default=",".join(TASKS), help="which, with commas between them")
    parser.add_argument("--runs", type=int, default=6, help="of each task and number of threads")
    parser.add_argument("--memory", help="tadoc.max_memory_bytes, such as 32GiB; else the default")
    args = parser.parse_args()
    for folder in args.folders:
        for size_mb in args.sizes_mb.split(","):
            measure(folder, int(size_mb) * 10**6, args.tadoc, args.tasks.split(","), args.runs, args.memory)


if __name__ == "__main__":
    main()
