#!/usr/bin/env python3
"""Measures statements in one process of one core and on 1, 2, 4, 8 workers of one core each, on this machine.

Claims it supports: "two workers take at most 1 / 1.7 of the time of one core, four 1 / 3, eight 1 / 5", "no statement is
slower over workers than in one process", "workers add at most 5 ms to a statement on an open corpus", and with --parquet the
claim of the papers: questions on compressed text are faster than the same questions on plain text, on the same engine.
With --ingest: "four workers ingest at least 3.2 times as fast as one core", or what bounds it.

    python3 benches/peers/workers.py --tadoc tadoc --cores 0-8 [--workers 1,2,4,8] [--parquet] FOLDER_OR_CORPUS

Method. The documents of a folder become one file of many segments, or a file is used as it is. The command is bound to the
first core, and each worker to one of the others, in turn. With fewer cores than processes several share a core: the processor
time still counts then, and the time does not. New workers answer each statement, the first time with nothing open (cold; the
file is in the page cache) and --runs times more. The shortest of those is the warm time, as the command prints it. Answers are
compared with those of one process.

Processor time is that of one warm run on average: of the command, of the worker that computed most, and of all workers
together. The first two together are what the time is bound by on machines of one core each; "cold bound" are these two of
the cold run. They count where other programs take the cores, and times do not. Bytes are those that workers packed
for one another, from EXPLAIN ANALYZE. "adds" is the shortest time of a statement without work that is divided, less that of one
process.

--parquet writes the documents as text to Parquet without compression, and asks the questions that SQL can ask of it.

--sample N checks the model of a larger corpus: FOLDER has archives of one kind of text (`make_large.py --archives`), and the
first N are the sample. Each stage of two statements, with nothing open and with all open, is printed beside what the rates of
the planner, and the sample, say of it (`model.py`). One process has the last core of --cores, and works at the same time as
the workers if there is one for it. All cores ingest. --seconds bounds the whole: what is not measured by then is left out.

    python3 benches/peers/workers.py --sample 3 --workers 8 --cores 0-9 --memory 64GiB --seconds 400 FOLDER

--engine ballista asks the same statements of Ballista's scheduler and executors (`both`: of workers, too), by the examples
`scheduler`, `executor` and `client` of src/ballista in the folder --ballista. The client and the scheduler share the first
core, and the processor time of both is that of the command. A stage has a task for each executor.

    cargo build -p datafusion-tadoc-ballista --examples
    python3 benches/peers/workers.py --engine ballista --workers 1,2 --cores 0-2 FOLDER_OR_CORPUS

--ingest measures no statement: it ingests the folder in one process, then by workers, and compares the files byte for byte.
The processor time of one process, over that of the command with workers or of the worker that computed most, whichever is
more, bounds what any number of cores gains.
"""

import argparse
import filecmp
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

import model

STATEMENTS = {
    "sequence_count, 3 words": "SELECT count(*), sum(count) FROM sequence_count('{f}', 3)",
    "sequence_count, top 10": "SELECT sequence, count FROM sequence_count('{f}', 3) ORDER BY count DESC, sequence LIMIT 10",
    "cooccurrence, window of 5": "SELECT count(*), sum(count) FROM cooccurrence('{f}', 5)",
    "cooccurrence, 10 and more": "SELECT count(*), min(word1), max(word2) FROM cooccurrence('{f}', 5, min_count => 10)",
    "inverted_index": "SELECT count(*), sum(doc_count) FROM inverted_index('{f}')",
    "inverted_index, lists": "SELECT count(*), sum(cardinality(doc_ids)) FROM inverted_index('{f}')",
    "ranked_inverted_index": "SELECT count(*), sum(count) FROM ranked_inverted_index('{f}')",
    "ranked_inverted_index, ranks": "SELECT count(*), sum(rank) FROM ranked_inverted_index('{f}') WHERE rank <= 3",
    "tfidf": "SELECT count(*), sum(tf), sum(df) FROM tfidf('{f}')",
    "tokens, ids of words": "SELECT count(*), sum(word_id) FROM tokens('{f}')",
    "word_count": "SELECT count(*), sum(count) FROM word_count('{f}')",
    "sequence_count by_doc": "SELECT count(*), sum(count) FROM sequence_count('{f}', 3, by_doc => true)",
    "search, frequent phrase": "SELECT count(*), sum(byte_offset) FROM search('{f}', '\"of the\"')",
    "text of documents": "SELECT count(*), sum(length(text)) FROM documents('{f}')",
}
SPLIT = "string_to_array(trim(regexp_replace(text, '\\W+', ' ', 'g')), ' ')"
POSITIONS = f"(SELECT doc_id, unnest({SPLIT}) AS word, unnest(range(1, CAST(cardinality({SPLIT}) AS BIGINT) + 1)) AS at FROM t)"
NEXT = "lead(word, {n}) OVER (PARTITION BY doc_id ORDER BY at)"
PLAIN = {
    "word_count": f"SELECT count(*), sum(c) FROM (SELECT word, count(*) AS c FROM {POSITIONS} WHERE word <> '' GROUP BY word)",
    "inverted_index": "SELECT count(*), sum(c) FROM (SELECT word, count(DISTINCT doc_id) AS c FROM "
    f"{POSITIONS} WHERE word <> '' GROUP BY word)",
    "sequence_count, 3 words": "SELECT count(*), sum(c) FROM (SELECT word, b, d, count(*) AS c FROM (SELECT word, "
    f"{NEXT.format(n=1)} AS b, {NEXT.format(n=2)} AS d FROM {POSITIONS} WHERE word <> '') WHERE d IS NOT NULL "
    "GROUP BY word, b, d)",
    "text of documents": "SELECT count(*), sum(length(text)) FROM t",
}
# Parts of the plain text that tasks read, as corpora have segments.
NUM_ROW_GROUPS = 64
# Let each worker have a part of the plain text, however short it is. The engine divides plans of several partitions only,
# and plans as many as the command has cores.
DIVIDE_PLAIN = [
    "SET datafusion.execution.target_partitions = 2",
    "SET datafusion.optimizer.repartition_file_min_size = '0'",
    "SET distributed.file_scan_config_bytes_per_partition = '1'",
]
SHORT_RUNS = 100
NO_WORK = "SELECT count(*) FROM term_count('{f}', 'xqzzyvk')"
# Statements of the model, in the order in which they are asked, and true for those whose rows are added up. The first one
# opens the corpus.
MODEL = {"sequence_count, 3 words": True, "text of documents": False}


class Program:
    """A program of a statement that runs on until it is stopped, on one core."""

    def __init__(self, core, command, sign, is_error=True):
        """Starts it, and waits for a line with the `sign`, on its standard error or output."""
        pipes = {"stderr": subprocess.PIPE} if is_error else {"stdout": subprocess.PIPE}
        self.process = subprocess.Popen(["taskset", "-c", core, *command], text=True, **pipes)
        line = (self.process.stderr or self.process.stdout).readline()
        self.sign = re.search(sign, line).group()

    def computed(self):
        """Returns the processor time of the process so far, in seconds."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak(self):
        """Returns the largest resident memory of the process so far, in MB."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)) * 1024 / 1e6

    def stop(self):
        self.process.terminate()
        self.process.wait()


def worker(tadoc, core):
    """Starts a worker, whose `sign` is its URL."""
    started = Program(core, [*tadoc, "worker", "--listen", "127.0.0.1:0"], r"http://\S+")
    urllib.request.urlopen(f"{started.sign}/healthz").read()
    return started


class Measured:
    """Times of a statement: cold and warm, and the processor time of a warm run, and what bounds the cold one."""

    def __init__(self, rows, seconds, cold_bound, runs, command, workers):
        self.rows = rows
        self.cold, self.warm, self.cold_bound = seconds[0], min(seconds[1:]), cold_bound
        self.command = command / runs
        self.most = max((used / runs for used in workers), default=0)
        self.all = sum(workers) / runs


class Session:
    """A command on one core, and workers on others."""

    def __init__(self, arguments, cores, num_workers):
        self.tadoc, self.runs = arguments.tadoc.split(), arguments.runs
        self.command = ["taskset", "-c", cores[0], *self.tadoc, "sql", "--format", "csv"]
        self.settings, self.beside = [], []
        others = cores[1:] or cores
        self.workers = [worker(self.tadoc, others[at % len(others)]) for at in range(num_workers)]
        if self.workers:
            self.command += ["--workers", ",".join(worker.sign for worker in self.workers)]

    def parts(self, statements):
        """Returns the arguments of the command for `statements`."""
        return [part for statement in statements for part in ("-c", statement)]

    def lines(self, out):
        """Returns what the command has written, in lines of values between commas."""
        return out.splitlines()

    def command_s(self):
        """Returns the processor time of the commands that have ended, and of the processes beside them, in seconds."""
        return children() + sum(process.computed() for process in self.beside)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.workers, *self.beside]:
            process.stop()

    def run(self, sql, setup, times):
        """Returns the lines of `times` runs, their seconds, and the processor time of the command and each worker."""
        before = [worker.computed() for worker in self.workers]
        out, seconds = self.run_all(setup, [sql] * times)
        used = [worker.computed() - start for worker, start in zip(self.workers, before)]
        return self.lines(out), seconds, used

    def run_all(self, setup, statements, most_s=None):
        """Returns what the statements write, and their seconds. After `most_s` seconds the rest is left out."""
        parts = self.parts([*self.settings, *setup, *statements])
        done = subprocess.Popen(self.command + parts, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = done.communicate(timeout=most_s)
        except subprocess.TimeoutExpired:
            done.kill()
            out, err = done.communicate()
        else:
            if done.returncode:
                raise SystemExit(f"{statements}: {err}")
        found = re.findall(r"rows?, ([\d.]+) (s|ms|µs)", err)
        return out, [float(number) * model.UNITS[unit] for number, unit in found][-len(statements):]

    def measured(self, sql, setup=()):
        """Measures a statement. The first run of new workers is the cold one."""
        before = self.command_s()
        _, cold, most = self.run(sql, setup, 1)
        once = self.command_s() - before
        before = self.command_s()
        lines, seconds, used = self.run(sql, setup, self.runs + 1)
        # The command opens the corpus again, and the workers do not.
        command = self.command_s() - before - (0 if self.workers else once)
        runs = self.runs + 1 if self.workers else self.runs
        lines = lines[: len(lines) // (self.runs + 1)]
        return Measured(lines, [cold[0], *seconds[1:]], once + max(most, default=0), runs, command, used)

    def short(self, sql, setup):
        """Returns the shortest time of a short statement, the processor time of the command for one, and that of the worker
        that computed most, in milliseconds."""
        before = self.command_s()
        self.run(sql, setup, 1)
        once = self.command_s() - before
        before = self.command_s()
        _, seconds, used = self.run(sql, setup, SHORT_RUNS + 1)
        command = (self.command_s() - before - once) / SHORT_RUNS
        most = max(used, default=0) / (SHORT_RUNS + 1)
        return tuple(1e3 * part for part in (min(seconds), command, most))

    def bytes_packed(self, sql, setup):
        """Returns the bytes that workers pack for one another."""
        lines, _, _ = self.run(f"EXPLAIN ANALYZE {sql}", setup, 1)
        return counted("\n".join(lines), "bytes_packed")


class Cluster(Session):
    """A client and a scheduler of Ballista on one core, and executors on others."""

    def __init__(self, arguments, cores, num_workers):
        super().__init__(arguments, cores, 0)
        programs = [os.path.join(arguments.ballista, name) for name in ("scheduler", "executor", "client")]
        scheduler, executor, client = programs
        scheduler = Program(cores[0], [scheduler, "127.0.0.1:0"], r"df://\S+", is_error=False)
        self.beside = [scheduler]
        self.command = ["taskset", "-c", cores[0], client, scheduler.sign]
        self.settings = [f"SET datafusion.execution.target_partitions = {num_workers}"]
        others = cores[1:] or cores
        for at in range(num_workers):
            ports = map(str, free_ports(2))
            command = [executor, scheduler.sign, *ports]
            self.workers.append(Program(others[at % len(others)], command, "executor", is_error=False))
        # They say so before the scheduler knows them.
        time.sleep(2)

    def parts(self, statements):
        return statements

    def lines(self, out):
        rows = [line.strip("| ") for line in out.splitlines() if line.startswith("|")]
        return [",".join(value.strip() for value in row.split("|")) for row in rows]


def free_ports(count):
    """Returns ports at which nothing listens."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def counted(analyzed, name):
    """Returns the sum of the counter `name` of all nodes of an EXPLAIN ANALYZE."""
    # A billion is shown as B, or as GB of a size.
    found = re.findall(rf"{name}=([\d.]+) ?([KMGB]?)", analyzed)
    return sum(float(number) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}[unit] for number, unit in found)


def children():
    """Returns the processor time of the commands that have ended, without workers, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def cores_of(text):
    """Returns the numbers of cores of a list such as `0-3,8`."""
    cores = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores += [str(core) for core in range(int(first), int(last or first) + 1)]
    return cores


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tadoc", default="target/debug/tadoc", help="the command, with blanks between its words")
    parser.add_argument("--engine", default="workers", choices=["workers", "ballista", "both"])
    parser.add_argument("--ballista", default="target/debug/examples", help="folder of the programs of Ballista")
    parser.add_argument("--cores", default="0,1", help="of the command, and of the workers in turn")
    parser.add_argument("--workers", default="1,2,4,8", help="numbers of workers")
    parser.add_argument("--block-size", default="32MiB", help="text of a segment")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--divide", default="auto", help="auto: what is faster in one process stays there; or always")
    parser.add_argument("--only", default="", help="a part of the names of the statements to measure")
    parser.add_argument("--parquet", action="store_true", help="ask plain text in Parquet, too")
    parser.add_argument("--ingest", action="store_true", help="measure ingests of the folder")
    parser.add_argument("--sample", type=int, default=0, help="check the model by so many of the archives of the folder")
    parser.add_argument("--memory", default="8GiB", help="tadoc.max_memory_bytes of the model's statements")
    parser.add_argument("--seconds", type=float, default=480, help="most time of the model")
    parser.add_argument("--options", default="", help="further options of `tadoc ingest`, as one text")
    parser.add_argument("texts", help="a folder of documents, or a corpus file; of archives with --sample")
    arguments = parser.parse_args()
    cores = cores_of(arguments.cores)
    with tempfile.TemporaryDirectory() as temp:
        file = os.path.join(temp, "texts.tadoc")
        tadoc = arguments.tadoc.split()
        if arguments.ingest:
            ingests(arguments, cores, temp)
            return
        if arguments.sample:
            check_model(arguments, cores, temp)
            return
        if os.path.isdir(arguments.texts):
            options = ["--block-size", arguments.block_size, "--quiet"]
            subprocess.run([*tadoc, "ingest", arguments.texts, "-o", file, *options], check=True)
        else:
            file = os.path.abspath(arguments.texts)
        statements = {name: sql.format(f=file) for name, sql in STATEMENTS.items() if arguments.only in name}
        divide = [f"SET tadoc.divide = '{arguments.divide}'"]
        compare(arguments, cores, statements, [], divide)
        if arguments.engine != "ballista":
            overhead(arguments, cores, file)
        if arguments.parquet:
            plain = os.path.join(temp, "texts.parquet")
            write_plain(tadoc, file, plain)
            print("\nPlain text in Parquet:\n")
            table = f"CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{plain}'"
            statements = {name: sql for name, sql in PLAIN.items() if arguments.only in name}
            compare(arguments, cores, statements, [table], DIVIDE_PLAIN)


def write_plain(tadoc, file, plain):
    """Writes the documents of a corpus as text to Parquet, in as many row groups as several workers need."""
    count = [*tadoc, "sql", "-q", "--format", "csv", "-c", f"SELECT count(*) FROM documents('{file}')"]
    num_docs = int(subprocess.run(count, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1])
    num_rows = max(num_docs // NUM_ROW_GROUPS, 1)
    copy = f"COPY (SELECT doc_id, text FROM documents('{file}')) TO '{plain}' STORED AS PARQUET " \
        f"OPTIONS (compression 'uncompressed', max_row_group_size '{num_rows}')"
    subprocess.run([*tadoc, "sql", "-q", "-c", copy], check=True, stdout=subprocess.DEVNULL)


def ingests(arguments, cores, temp):
    print("| workers | s | one / s | command, s | most of a worker, s | all, s | bound | by workers |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: |")
    alone = os.path.join(temp, "alone.tadoc")
    one_s, one_command, _, _ = min(ingest(arguments, cores, 0, alone) for _ in range(arguments.runs))
    print(f"| none | {one_s:.2f} | | {one_command:.2f} | | | | |", flush=True)
    for num_workers in map(int, arguments.workers.split(",")):
        together = os.path.join(temp, "together.tadoc")
        runs = [ingest(arguments, cores, num_workers, together) for _ in range(arguments.runs)]
        if not filecmp.cmp(alone, together, shallow=False):
            raise SystemExit(f"the files differ with {num_workers} workers")
        seconds, command, used, share = min(runs)
        bound = one_command / max(command, *used)
        print(
            f"| {num_workers} | {seconds:.2f} | {one_s / seconds:.2f} | {command:.2f} | {max(used):.2f} | {sum(used):.2f} "
            f"| {bound:.2f} | {share} |",
            flush=True,
        )


def ingest(arguments, cores, num_workers, out):
    """Ingests the folder, and returns the time, the processor time of the command and of each worker, and their share."""
    with Session(arguments, cores, num_workers) as session:
        command = ["taskset", "-c", cores[0], *session.tadoc, "ingest", arguments.texts, "-o", out, "--force"]
        command += arguments.options.split()
        if session.workers:
            command += ["--workers", ",".join(worker.sign for worker in session.workers)]
        before, before_all = children(), [worker.computed() for worker in session.workers]
        start = time.monotonic()
        done = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
        seconds, computed = time.monotonic() - start, children() - before
        used = [worker.computed() - start for worker, start in zip(session.workers, before_all)]
        share = re.search(r"\d+ of \d+ segments by workers", done.stderr)
        return seconds, computed, used, share.group() if share else ""


# Kinds of sessions of an engine, each with a word behind the number of workers.
ENGINES = {"workers": [("", Session)], "ballista": [(" of Ballista", Cluster)]}
ENGINES["both"] = ENGINES["workers"] + ENGINES["ballista"]


def compare(arguments, cores, statements, setup, divide):
    """Measures statements in one process and on workers, where the settings `divide` come before them."""
    print("| statement | workers | cold, s | warm, s | one / warm | cold bound, s | command, s | most, s | all, s | packed, MB |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |")
    for name, sql in statements.items():
        with Session(arguments, cores, 0) as alone:
            one = alone.measured(sql, setup)
        print(f"| {name} | none | {one.cold:.2f} | {one.warm:.3f} | | {one.cold_bound:.2f} | {one.command:.2f} | | | |", flush=True)
        for num_workers in map(int, arguments.workers.split(",")):
            for engine, start in ENGINES[arguments.engine]:
                with start(arguments, cores, num_workers) as session:
                    some = session.measured(sql, [*setup, *divide])
                    packed = session.bytes_packed(sql, [*setup, *divide]) / 1e6
                if some.rows[1:] != one.rows[1:]:
                    raise SystemExit(f"answers differ: {sql}: {one.rows}, {some.rows}")
                ratio = one.warm / some.warm
                print(
                    f"| | {num_workers}{engine} | {some.cold:.2f} | {some.warm:.3f} | {ratio:.2f} | {some.cold_bound:.2f} "
                    f"| {some.command:.2f} | {some.most:.2f} | {some.all:.2f} | {packed:.0f} |",
                    flush=True,
                )


class Seen:
    """Seconds of a statement with nothing open and with all open, and of workers the MB that they packed, that connections
    carried, and that the largest one had in memory. None is what was not measured."""

    cold = warm = packed = sent = memory = rows = None


def check_model(arguments, cores, temp):
    """Prints the stages of statements over a folder of archives beside those that the model predicts."""
    end = time.monotonic() + arguments.seconds
    num_workers = int(arguments.workers)
    names = sorted(os.listdir(arguments.texts))
    sizes = []
    for label, parts in (("sample", names[: arguments.sample]), ("whole", names)):
        file = os.path.join(temp, f"{label}.tadoc")
        start = time.monotonic()
        paths = [os.path.join(arguments.texts, part) for part in parts]
        options = ["--block-size", arguments.block_size, "--quiet", *arguments.options.split()]
        subprocess.run([*arguments.tadoc.split(), "ingest", *paths, "-o", file, *options], check=True)
        ingested = time.monotonic() - start
        shape = model.Shape(arguments.tadoc.split(), file)
        print(f"{label}: {shape}; ingested in {ingested:.1f} s, {shape.text_bytes / ingested / 1e6:.0f} MB/s", flush=True)
        sizes.append((label, *stages(arguments, cores, file, shape, end)))
    print(f"\n| statement, {num_workers} workers | stage | sample | by rates | by the sample | measured | / rates | / sample |")
    print("| --- | --- | --: | --: | --: | --: | --: | --: |")
    for name in MODEL:
        sample, whole = ((expected[name], seen[name]) for _, expected, seen in sizes)
        model.show(name, sample, whole)


def stages(arguments, cores, file, shape, end):
    """Returns the stages that the rates predict and those that are measured, for each statement over `file`."""
    num_workers = int(arguments.workers)
    setup = [
        "SET tadoc.device = 'cpu'",
        "SET tadoc.divide = 'always'",
        f"SET tadoc.max_memory_bytes = '{arguments.memory}'",
    ]
    statements = {name: STATEMENTS[name].format(f=file) for name in MODEL}
    is_beside = len(cores) > num_workers + 1
    with Session(arguments, cores[:-1] if is_beside else cores, num_workers) as session:
        out, _ = session.run_all(setup, [f"EXPLAIN {sql}" for sql in statements.values()])
        explained = re.findall(r"physical_plan,\"[^\"]*(?:\"\"[^\"]*)*\"", out)
        most_s = end - time.monotonic()
        ones = []
        alone = threading.Thread(target=lambda: ones.append(alone_seen(arguments, cores[-1], setup, statements, most_s)))
        alone.start()
        if not is_beside:
            alone.join()
        some = workers_seen(session, setup, statements, end - time.monotonic())
        alone.join()
    expected, seen = {}, {}
    for (name, is_added_up), plan in zip(MODEL.items(), explained):
        one = ones[0][name]
        if None not in (one.rows, some[name].rows) and one.rows != some[name].rows:
            raise SystemExit(f"answers differ: {name}: {one.rows}, {some[name].rows}")
        expected[name] = model.predicted(shape, model.estimated(plan), num_workers, is_added_up)
        seen[name] = model.measured(one, some[name], num_workers)
    return expected, seen


def alone_seen(arguments, core, setup, statements, most_s):
    """Measures the statements in one process on one core."""
    with Session(arguments, [core], 0) as session:
        first = next(iter(statements.values()))
        out, seconds = session.run_all(setup, [first, *statements.values()], most_s)
    return seen_of(statements, out, seconds, skip=1)


def workers_seen(session, setup, statements, most_s):
    """Measures the statements on the workers of a session."""
    idle = [worker.peak() for worker in session.workers]
    first, *others = statements.values()
    before = [worker.computed() for worker in session.workers]
    out, seconds = session.run_all(setup, [f"EXPLAIN ANALYZE {first}", first, *others], most_s)
    used = [worker.computed() - start for worker, start in zip(session.workers, before)]
    print(f"processor time of the workers: {', '.join(f'{seconds:.1f}' for seconds in used)} s", flush=True)
    seen = seen_of(statements, out, seconds, skip=0)
    one = seen[next(iter(statements))]
    if one.cold is not None:
        one.packed = counted(out, "bytes_packed") / 1e6
        one.sent = counted(out, "bytes_transferred") / 1e6
        one.memory = max(worker.peak() - start for worker, start in zip(session.workers, idle))
    return seen


def seen_of(statements, out, seconds, skip):
    """Returns what was seen of each statement: the first one was asked twice, and its first `skip` rows do not count."""
    rows = re.findall(r"^\d+,\d+$", out, re.M)[skip:]
    seen = {name: Seen() for name in statements}
    for name, row, warm in zip(statements, rows, seconds[1:]):
        seen[name].rows, seen[name].warm = row, warm
    seen[next(iter(statements))].cold = seconds[0] if seconds else None
    return seen


def overhead(arguments, cores, file):
    """Prints what workers add to a statement without work on an open corpus."""
    sql = NO_WORK.format(f=file)
    num_workers = int(arguments.workers.split(",")[0])
    with Session(arguments, cores, 0) as alone:
        one, one_command, _ = alone.short(sql, [])
    with Session(arguments, cores, num_workers) as session:
        some, command, most = session.short(sql, ["SET tadoc.divide = 'always'"])
    print(
        f"\nA statement without work takes {one:.1f} ms in one process and {some:.1f} ms with {num_workers} workers: it adds "
        f"{some - one:.1f} ms. Processor time is {one_command:.1f} ms in one process, {command:.1f} ms of the command with "
        f"workers, and {most:.1f} ms of the worker that computed most."
    )


if __name__ == "__main__":
    main()
