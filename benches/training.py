#!/usr/bin/env python3
"""Takes rows of JSON to training data as sql/training.md does, and times each step.

Claim it supports: on two cores a million pages go from JSON lines through quality, near duplicates, contamination and an
export that is killed and goes on, with no near duplicate missed and none invented.

    python3 benches/training.py --tadoc target/debug/tadoc --rows 1000000 FOLDER

Method. Pages are made from a fixed seed: 50 to 90 words by rank out of 60,000, one in ten with one word changed in a copy
of an earlier page, one in twenty a line that repeats, one in fifty in French. A test set has 1,000 questions, half of them
out of pages. So the counts of each step are known, and the script compares them. Each step is one process, also timed by
its start; the processor time and the peak of resident memory are the kernel's. FOLDER is made anew.

Peers, by what they publish: text-dedup's README (MinHash of OSCAR-gl, 88,803 documents, 180 MB, in 15.3 s: 5,800
documents a second); fastdedup's README (FineWeb sample-10BT, 14.8 million documents, 29 GB: datatrove on one core not
done after 3 h 50 min, fewer than 1,080 a second; fastdedup 36 min 44 s on 5.5 cores, 6,750 a second).
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time

COPIES, NOISE, FRENCH, QUESTIONS = 10, 20, 50, 1000
STOP_WORDS = "the be to of and that have with in it is for on as was by he at from his they this or had not are but".split()
FRENCH_WORDS = "le la les de des et que qui dans une est pour pas avec sur elle nous vous leur mais plus cette être".split()


def pages(num_rows, rng):
    """Returns the pages, and the number of near duplicates, of noise, of French pages among them."""
    consonants, vowels = "bcdfghklmnprstvz", "aeiou"
    syllables = [c + v for c in consonants for v in vowels]
    words = ["".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(60_000)]
    ranked = STOP_WORDS + words
    weights, total = [], 0.0
    for rank in range(len(ranked)):
        total += 1 / (rank + 2)
        weights.append(total)
    made, counts = [], {"copies": 0, "noise": 0, "french": 0}
    originals = []
    for number in range(num_rows):
        if number % COPIES == COPIES - 1 and originals:
            # Jaccard of 5-grams: one word changes at most 5 of 46 and more, so 0.8 and more.
            text = list(made[rng.choice(originals)])
            text[rng.randrange(len(text))] = f"changed{number}"
            counts["copies"] += 1
        elif number % NOISE == 7:
            text = (rng.choices(words, k=5) + ["#buy", "#now", "\n"]) * 12
            counts["noise"] += 1
        elif number % FRENCH == 3:
            text = rng.choices(FRENCH_WORDS, k=60) + [f"mot{number}"]
            rng.shuffle(text)
            counts["french"] += 1
        else:
            text = rng.choices(ranked, cum_weights=weights, k=rng.randint(60, 90))
            text[::12] = rng.choices(STOP_WORDS[:8], k=len(text[::12]))
            if len(originals) < 50_000 or rng.random() < 0.1:
                originals.append(number)
        made.append(text)
    return made, counts, originals


def write_inputs(folder, num_rows):
    """Writes pages and questions, and returns their bytes and the expected counts."""
    rng = random.Random(2026)
    made, counts, originals = pages(num_rows, rng)
    num_bytes = 0
    with open(os.path.join(folder, "pages.jsonl"), "w", encoding="utf-8") as file:
        for number, text in enumerate(made):
            text = " ".join(text)
            num_bytes += len(text.encode())
            file.write(json.dumps({"url": f"https://example.org/{number}", "text": text}, ensure_ascii=False) + "\n")
    with open(os.path.join(folder, "tests.jsonl"), "w", encoding="utf-8") as file:
        for number in range(QUESTIONS):
            words = made[rng.choice(originals)][:30] if number % 2 else [f"q{number}x{word}" for word in range(30)]
            file.write(json.dumps({"id": str(number), "text": " ".join(words)}) + "\n")
    return num_bytes, counts


class Steps:
    """The steps, with the seconds that each takes."""

    def __init__(self, tadoc, folder, num_rows, num_bytes):
        self.tadoc, self.folder, self.num_rows, self.num_bytes = tadoc, folder, num_rows, num_bytes
        self.seconds = self.processor = self.memory = 0.0
        print("| step | s | processor s | pages/s | MB/s | memory, MB |\n| --- | ---: | ---: | ---: | ---: | ---: |")

    def run(self, name, *arguments, kill_after=None):
        """Runs the command, and returns its standard output."""
        start = time.perf_counter()
        process = subprocess.Popen([self.tadoc, *arguments], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        if kill_after is not None:
            kill_after(process)
        output = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode and kill_after is None:
            sys.exit(f"{name} failed")
        processor, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        self.seconds, self.processor, self.memory = self.seconds + seconds, self.processor + processor, max(self.memory, memory)
        self.row(name, seconds, processor, memory)
        return output

    def row(self, name, seconds, processor, memory):
        rates = f"{self.num_rows / seconds:,.0f} | {self.num_bytes / seconds / 1e6:.1f}"
        print(f"| {name} | {seconds:.1f} | {processor:.1f} | {rates} | {memory:,.0f} |", flush=True)

    def sql(self, name, *statements):
        """Runs statements, and returns the rows of the last one."""
        commands = [part for statement in statements for part in ("-c", statement)]
        output = self.run(name, "sql", "--quiet", "--format", "csv", *commands)
        return [line.split(",") for line in output.splitlines()[1:]]


def expect(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: got {got}, expected {expected}")


def kill_at_half(folder, num_files):
    """Returns a function that kills the export once half of its files are there."""

    def kill(process):
        while process.poll() is None:
            there = len([name for name in os.listdir(folder) if name.startswith("part-")]) if os.path.isdir(folder) else 0
            if there >= num_files // 2:
                process.send_signal(signal.SIGKILL)
                return
            time.sleep(0.01)

    return kill


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tadoc", default="target/debug/tadoc")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("folder")
    arguments = parser.parse_args()
    folder = os.path.abspath(arguments.folder)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    # In a process of its own: the kernel counts the memory of this one for each step that it starts.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        num_bytes, counts = pool.apply(write_inputs, (folder, arguments.rows))
    print(f"{arguments.rows:,} pages, {num_bytes / 1e6:.0f} MB of text, {counts}\n", flush=True)
    steps = Steps(os.path.abspath(arguments.tadoc), folder, arguments.rows, num_bytes)

    steps.run("ingest", "ingest", "pages.jsonl", "--documents", "jsonl:text", "-o", "pages.tadoc", "--quiet")
    print(f"corpus / text: {os.path.getsize(os.path.join(folder, 'pages.tadoc')) / num_bytes:.3f}", file=sys.stderr)
    quality = (
        "COPY (SELECT doc_id, l['code'] AS language, q['words'] AS words, q['stop_words'] AS stop_words, "
        "q['symbols_per_word'] AS symbols, q['repeated_lines'] AS lines, q['top_2gram'] AS top_2gram, q['top_4gram'] AS top_4gram, "
        "q['repeated_5grams'] AS repeated FROM (SELECT doc_id, text_quality(text) AS q, language(text) AS l FROM 'pages.tadoc')) "
        "TO 'measured.parquet' STORED AS PARQUET"
    )
    steps.sql("quality and language", quality)
    good = "words >= 50 AND stop_words >= 2 AND symbols <= 0.1 AND lines <= 0.3 AND repeated <= 0.15"
    rows = steps.sql("good pages", f"SELECT count(*) FROM 'measured.parquet' WHERE {good}")
    num_good = int(rows[0][0])
    rows = steps.sql(
        "clusters",
        "COPY (SELECT doc_id FROM near_duplicate_clusters('pages.tadoc', threshold => 0.7) WHERE NOT is_kept) TO 'copies.parquet' STORED AS PARQUET",
        "SELECT count(*) FROM 'copies.parquet'",
    )
    expect("near duplicates", int(rows[0][0]), counts["copies"])
    rows = steps.sql("overlap", "SELECT count(*), sum(CASE WHEN share = 1 THEN 1 ELSE 0 END) FROM overlap('pages.tadoc', 'tests.jsonl') WHERE share > 0.5")
    expect("texts of the test set in pages", rows, [[str(QUESTIONS // 2), str(QUESTIONS // 2)]])
    steps.sql(
        "pages to keep",
        f"COPY (SELECT doc_id FROM 'measured.parquet' LEFT ANTI JOIN 'copies.parquet' USING (doc_id) WHERE {good}) "
        "TO 'kept.parquet' STORED AS PARQUET",
    )
    docs_per_file = max(1, arguments.rows // 20)
    export = ["export", "pages.tadoc", "-o", "train", "--format", "jsonl.zst", "--columns", "path, text", "--quiet",
              "--docs-per-file", str(docs_per_file), "--where", "doc_id IN (SELECT doc_id FROM 'kept.parquet')"]  # fmt: skip
    out = os.path.join(folder, "train")
    steps.run("export, killed at half", *export, kill_after=kill_at_half(out, 20))
    before = {name: os.stat(os.path.join(out, name)).st_mtime_ns for name in os.listdir(out) if name.startswith("part-")}
    steps.run("export, the rest", *export)
    for name, written in before.items():
        expect(f"time of {name}", os.stat(os.path.join(out, name)).st_mtime_ns, written)
    rows = steps.sql("count of what was exported", "SELECT count(*) FROM 'kept.parquet'")
    exported = sum(
        subprocess.run(["zstd", "-dc", os.path.join(out, name)], stdout=subprocess.PIPE, check=True).stdout.count(b"\n")
        for name in os.listdir(out)
        if name.startswith("part-")
    )
    expect("exported pages", exported, int(rows[0][0]))
    steps.row("all", steps.seconds, steps.processor, steps.memory)
    print(f"\n{num_good:,} good pages, {exported:,} exported; {len(before)} of 20 files were kept")


if __name__ == "__main__":
    main()
