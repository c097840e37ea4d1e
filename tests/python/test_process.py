"""Threads, interrupts, forks, and the end of the interpreter during a statement."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import datafusion_tadoc as tadoc

# A shell starts background processes with interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A statement that takes longer than any test.
ENDLESS = "SELECT count(*) FROM generate_series(1, 100000000000) AS a (n) WHERE n % 7 = 8"


def test_threads_share_a_connection(plays, con):
    expected = con.word_count(plays).rows()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: con.word_count(plays).rows(), range(64)))
    assert all(answer == expected for answer in answers)


def test_python_runs_on_and_ends_during_a_statement():
    code = f"""
import threading, time, datafusion_tadoc as tadoc
threading.Thread(target=tadoc.connect().sql({ENDLESS!r}).rows, daemon=True).start()
start = time.monotonic()
for _ in range(20): time.sleep(0.01)
assert time.monotonic() - start < 2
print("free", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    # The interpreter ends while the statement runs.
    assert (done.stdout, done.stderr, done.returncode) == ("free\n", "", 0)


def read_all(result):
    import pyarrow

    try:
        pyarrow.RecordBatchReader.from_stream(result).read_all()
    except Exception:
        # The reader's own error comes first, and the interrupt behind it.
        time.sleep(1)


# No `eval` of a text: where an interrupt leaves one, Python remembers it as not handled until the next
# `eval`, and ends with the signal (status 130) after pytest has said that all passed.
CONSUMERS = {"rows": tadoc.Result.rows, "arrow": tadoc.Result.arrow, "show": tadoc.Result.show, "stream": read_all}


@pytest.mark.parametrize("consume", CONSUMERS)
def test_interrupts_end_a_statement(consume, con):
    if consume in ("arrow", "stream"):
        pytest.importorskip("pyarrow")
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        CONSUMERS[consume](con.sql(ENDLESS))
    timer.join()
    assert time.monotonic() - start < 5
    assert con.sql("SELECT 1").rows() == [(1,)]


# Statements that read a stream, and what they need.
READERS = {
    "for row in result: pass": [],
    "result.fetch_record_batch().read_all()": ["pyarrow"],
    "import pyarrow; pyarrow.table(result)": ["pyarrow"],
    "import polars; polars.DataFrame(result)": ["polars"],
}


@pytest.mark.parametrize("take", READERS)
def test_interrupts_of_a_stream_are_nothing_but_an_interrupt(take, folder):
    for package in READERS[take]:
        pytest.importorskip(package)
    # Each batch comes at once, and then none any more.
    code = f"""
import os, signal, threading
import datafusion_tadoc as tadoc
signal.signal(signal.SIGINT, signal.default_int_handler)
result = tadoc.sql("SELECT value FROM generate_series(1, 100000000000) WHERE value < 10 OR value % 100000007 = 8")
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
{take}
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    # An error of a reader has the status of an error, also where its interrupt is shown.
    assert said.returncode in (1, 130, -signal.SIGINT)
    assert said.stderr.rstrip().endswith("KeyboardInterrupt") and said.stderr.count("Traceback") == 1, said.stderr


@pytest.mark.parametrize("consume", ["rows", "arrow", "show", "stream", "iterator", "sql"])
def test_another_thread_interrupts_a_statement(consume, con):
    takes = {**CONSUMERS, "stream": tadoc.Result.fetch_record_batch, "iterator": list, "sql": None}
    if consume in ("arrow", "stream"):
        pytest.importorskip("pyarrow")
    timer = threading.Timer(0.5, con.interrupt)
    start = time.monotonic()
    timer.start()
    with pytest.raises(tadoc.Interrupted, match="the statement was interrupted by interrupt"):
        if consume == "sql":
            con.sql(f"CREATE TABLE t AS {ENDLESS}")
        else:
            taken = takes[consume](con.sql(ENDLESS))
            taken.read_all()
    timer.join()
    assert time.monotonic() - start < 5
    # Statements that begin later are not meant, and neither are those of others.
    assert con.sql("SELECT 1").rows() == [(1,)]
    assert issubclass(tadoc.Interrupted, tadoc.Error)


def test_another_thread_interrupts_a_stream_of_arrow(con):
    pa = pytest.importorskip("pyarrow")
    reader = pa.RecordBatchReader.from_stream(con.sql("SELECT value FROM generate_series(1, 100000000000)"))
    reader.read_next_batch()
    con.interrupt()
    with pytest.raises(Exception, match="interrupted by interrupt"):
        while True:
            reader.read_next_batch()
    other = tadoc.connect()
    rows = iter(other.sql("SELECT value FROM generate_series(1, 100000)"))
    next(rows)
    con.interrupt()
    assert len(list(rows)) == 99_999


def test_another_thread_interrupts_an_ingest(con, folder):
    def endless():
        while True:
            yield "a.txt", "to be or not to be " * 1000

    threading.Timer(0.7, con.interrupt).start()
    with pytest.raises(tadoc.Interrupted):
        tadoc.ingest(endless(), "x.tadoc", connection=con)
    assert list(folder.iterdir()) == []


def test_interrupts_end_an_ingest(folder):
    def endless():
        while True:
            yield "a.txt", "to be or not to be " * 1000

    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        tadoc.ingest(endless(), "x.tadoc")
    timer.join()
    assert list(folder.iterdir()) == []


def test_an_interrupt_of_this_process_alone_ends_an_ingest_of_files(folder):
    words = random.Random(7)
    with open("notes.txt", "w") as notes:
        notes.writelines(f"{words.randrange(10**6)} of {words.randrange(10**6)}\n" for _ in range(10**6))

    def interrupt():
        # Until the command is at work, and has a file to remove.
        while not list(folder.glob(".notes.tadoc*")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        tadoc.ingest("notes.txt", "notes.tadoc")
    thread.join()
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


PLANTED = ["datafusion_tadoc/__init__.py", "datafusion_tadoc/__main__.py", "signal.py", "os.py"]


@pytest.mark.parametrize("name", PLANTED)
def test_the_command_runs_no_code_of_the_current_folder(name, con, folder):
    planted = folder / name
    planted.parent.mkdir(exist_ok=True)
    (planted.parent / "__init__.py").touch()
    planted.write_text("import sys; open('planted', 'w').close(); sys.exit(0)")
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("to be")
    tadoc.ingest("notes", "notes.tadoc")
    assert con.documents("notes.tadoc").rows()[0][1] == "a.txt"
    corpus = tadoc.open("living", create=True)
    corpus.append([("a.txt", "to be")])
    corpus.optimize()
    assert not (folder / "planted").exists()


def test_a_command_that_writes_nothing_is_an_error(monkeypatch, folder):
    monkeypatch.setattr("datafusion_tadoc._command.START", "pass")
    (folder / "a.txt").write_text("to be")
    with pytest.raises(tadoc.Error, match="wrote nothing"):
        tadoc.ingest("a.txt", "a.tadoc")


def test_the_command_is_that_of_the_package_that_starts_it(folder):
    (folder / "a.txt").write_text("to be")
    home = os.path.dirname(os.path.dirname(tadoc.__file__))
    code = f"""
import sys
sys.path.append({home!r})
import datafusion_tadoc as tadoc
tadoc.ingest('a.txt', 'a.tadoc')
"""
    # Outside of a virtual environment the interpreter does not find the package by itself.
    python = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([python, "-c", code], check=True, timeout=60)
    assert (folder / "a.tadoc").is_file()


def test_the_command_can_be_interrupted():
    command = subprocess.Popen(
        [sys.executable, "-m", "datafusion_tadoc", "sql", "-c", ENDLESS], stderr=subprocess.PIPE, text=True
    )
    time.sleep(1)
    command.send_signal(signal.SIGINT)
    assert "interrupted" in command.communicate(timeout=20)[1]
    assert command.returncode == 130


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_gets_an_error(con):
    con.sql("SELECT 1").rows()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            con.sql("SELECT 1").rows()
            said = "no error"
        except tadoc.Error as error:
            said = str(error)
        os.write(write, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"forked" in os.read(read, 1000)


def test_deep_statements_do_not_break_the_process(con):
    for depth in [100, 3_000, 100_000]:
        sql = "SELECT " + "(" * depth + "1" + ")" * depth
        try:
            assert con.sql(sql).rows() == [(1,)]
        except tadoc.Error as error:
            assert "deep" in str(error)
    union = " UNION ALL ".join(["SELECT 1"] * 1_000)
    try:
        assert len(con.sql(union).rows()) == 1_000
    except tadoc.Error as error:
        assert "deep" in str(error)
