"""Ingest of pairs, Arrow objects and files, and living corpora."""

import datetime
import gzip
import io
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import datafusion_tadoc as tadoc


def texts(con, corpus):
    return con.sql("SELECT path, content FROM documents($1) ORDER BY doc_id", [str(corpus)]).rows()


def test_pairs_keep_their_bytes_and_order(con, folder):
    pairs = [(f"{n}.txt", f"text {n} of many ".encode() * (n % 7) + bytes([n % 256])) for n in range(70_000)]
    assert tadoc.ingest(iter(pairs), folder / "pairs.tadoc") == folder / "pairs.tadoc"
    assert texts(con, folder / "pairs.tadoc") == pairs


def test_a_failing_source_leaves_nothing(folder):
    def source():
        yield "a.txt", "to be"
        raise ZeroDivisionError("of the source")

    with pytest.raises(ZeroDivisionError, match="of the source"):
        tadoc.ingest(source(), "x.tadoc")
    with pytest.raises(TypeError, match="pairs of path and text"):
        tadoc.ingest([7], "x.tadoc")
    with pytest.raises(TypeError, match="str or bytes"):
        tadoc.ingest([("a", 7)], "x.tadoc")
    assert list(folder.iterdir()) == []


def test_a_corpus_is_not_replaced_by_accident(plays, con):
    before = texts(con, plays)
    with pytest.raises(tadoc.Error, match="exists"):
        tadoc.ingest([("a", "b")], plays)
    assert texts(con, plays) == before
    tadoc.ingest([("a", "b")], plays, overwrite=True)
    assert texts(con, plays) == [("a", b"b")]


@pytest.mark.parametrize(
    ("out", "message"),
    [("plays", "ends with .tadoc, such as plays.tadoc"), ("plays/", "such as plays.tadoc"),
     ("", "such as corpus.tadoc"), ("plays.txt", "ends with .tadoc"), ("*.tadoc", "pattern"),
     ("pl?ys.tadoc", "pattern"), ("[p]lays.tadoc", "pattern"), ("s3://plays/*.tadoc", "pattern"),
     ("file:plays.tadoc", "write ./file:plays.tadoc"), ("a:b.tadoc", "colon"),
     ("folder.tadoc", "is a folder"), ("living", "append")],
)  # fmt: skip
def test_rows_become_the_file_that_is_named(out, message, con, folder):
    (folder / "folder.tadoc").mkdir()
    tadoc.open("living", create=True)
    before = sorted(folder.rglob("*"))
    rows = con.sql("SELECT 'a.txt' AS path, 'to be' AS text")
    for source in [[("a.txt", "to be")], rows]:
        for overwrite in [False, True]:
            with pytest.raises(tadoc.Error, match=re.escape(message)):
                tadoc.ingest(source, out, overwrite=overwrite)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("out", ["./a:b.tadoc", "deep/a:b.tadoc", "a b%20#{1}.tadoc", "file://HERE/a.tadoc"])
def test_rows_go_to_files_of_many_names(out, con, folder):
    out = out.replace("HERE", str(folder))
    tadoc.ingest([("a.txt", "to be")], out)
    assert (folder / out.removeprefix(f"file://{folder}/")).is_file()
    assert texts(con, out) == [("a.txt", b"to be")]


def test_errors_name_the_options_of_python(plays, folder):
    (folder / "a.txt").write_text("to be")
    for source in [[("a", "b")], "a.txt"]:
        with pytest.raises(tadoc.Error, match="overwrite=True") as error:
            tadoc.ingest(source, plays)
        assert "--force" not in str(error.value) and "OPTIONS" not in str(error.value)
    with pytest.raises(tadoc.Error, match="; create=True begins a living corpus there"):
        tadoc.open("no_such_folder")
    # SQL is written in SQL.
    with pytest.raises(tadoc.Error, match=r"OPTIONS \('tadoc.create' 'true'\)"):
        tadoc.connect().sql("CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION 'no_such_folder'")


def test_user_columns_come_from_arrow(con):
    rows = con.sql("SELECT 'a.txt' AS path, 'to be' AS text, 7 AS severity, 'Ada' AS author")
    tadoc.ingest(rows, "rows.tadoc", tokenizer="uax29", layout="small")
    con.sql("CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION 'rows.tadoc'")
    assert con.sql("SELECT path, severity, author FROM t").rows() == [("a.txt", 7, "Ada")]


def test_files_are_those_of_the_command(con, folder):
    notes = folder / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "a.md").write_text("to be\nor not\n")
    (notes / "deep" / "b.md").write_text("to do")
    tadoc.ingest("notes", "one.tadoc")
    assert texts(con, "one.tadoc") == [("a.md", b"to be\nor not\n"), ("deep/b.md", b"to do")]
    tadoc.ingest([notes / "a.md", notes / "deep"], "lines.tadoc", documents="lines")
    assert len(texts(con, "lines.tadoc")) == 3
    with pytest.raises(tadoc.Error, match="nowhere"):
        tadoc.ingest("nowhere", "two.tadoc")
    command = [sys.executable, "-m", "datafusion_tadoc", "cat", "one.tadoc", "a.md"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"to be\nor not\n"


LINES = "2024-05-06 07:08:09 up\n2024-05-06 07:08:10 down\n"


def test_logs_have_times_and_a_corpus_of_files_grows(con, folder):
    (folder / "app.log").write_text(LINES)
    tadoc.ingest("app.log", "app.tadoc", documents="lines", timestamp="auto", timezone="Europe/Berlin")
    (first, last) = con.sql("SELECT min(ts), max(ts) FROM 'app.tadoc'").fetchone()
    assert (first.isoformat(), last - first) == ("2024-05-06T05:08:09+00:00", datetime.timedelta(seconds=1))
    # A second file is added, from the function and from the open corpus; a file that is there is not.
    tadoc.ingest("app.log", "logs", documents="lines", timestamp="auto", append=True)
    (folder / "web.log").write_text(LINES)
    with tadoc.open("logs", table="logs") as logs:
        logs.append(["web.log"], documents="lines", timestamp="auto")
        for add in (logs.append, lambda source, **options: tadoc.ingest(source, "logs", append=True, **options)):
            with pytest.raises(tadoc.Error, match="app.log is there already.* duplicate=True stores all once more"):
                add("app.log", documents="lines")
        logs.append("app.log", documents="lines", timestamp="auto", duplicate=True)
        assert logs.sql("SELECT count(*), count(ts), count(DISTINCT path) FROM logs").fetchone() == (6, 6, 2)
    # Rows that are added next may have the columns that files have brought.
    with tadoc.open("grown", create=True, table="grown") as grown:
        grown.append([("a.txt", "to be")])
        grown.append("app.log", documents="lines", timestamp="auto")
        grown.append(con.sql("SELECT 'b.txt' AS path, 'to do' AS text, TIMESTAMPTZ '2025-01-01T00:00:00Z' AS ts"))
        assert grown.sql("SELECT count(*), count(ts) FROM grown").fetchone() == (4, 3)
    with pytest.raises(tadoc.Error, match="logs is a place of living corpora; append=True adds to it"):
        tadoc.ingest("app.log", "logs")


def test_files_are_chosen_and_read_as_the_command_does(con, folder):
    pages = folder / "pages"
    pages.mkdir()
    (pages / "a.html").write_text("<title>A</title><p>to be</p>")
    (pages / "b.html").write_bytes("<p>caf\xe9</p>".encode("latin-1"))
    (pages / "c.md").write_text("to do")
    (pages / "d.txt.gz").write_bytes(gzip.compress(b"packed"))
    tadoc.ingest(pages, "html.tadoc", glob=["b.*", "x.*"], html="text", charset="auto")
    assert texts(con, "html.tadoc") == [("b.html", "café\n".encode())]
    tadoc.ingest(pages, "packed.tadoc", glob="*.gz", decompress=False)
    assert texts(con, "packed.tadoc")[0][1][:2] == b"\x1f\x8b"
    with pytest.raises(TypeError, match="^timestamp is for files; rows and pairs are documents already"):
        tadoc.ingest([("a", "b")], "rows.tadoc", timestamp="auto")
    with pytest.raises(TypeError, match="^append is for files"):
        tadoc.ingest([("a", "b")], "rows.tadoc", append=True)
    with pytest.raises(TypeError, match="^decompress is for files"):
        tadoc.open("living", create=True).append([("a", "b")], decompress=False)


class Terminal(io.StringIO):
    def isatty(self):
        return True


SUMMARY = r"(.*): 500 documents, 7\.9 kB of text in [\d.]+ k?B(ytes)? \([\d.]+ %\), G/N \d\.\d{3}\n[\d.]+ s, [\d.]+ MB/s\n"


def documents_of(kind, con):
    """500 documents of 7,890 bytes, as a source of this kind."""
    if kind == "pairs":
        return ((f"{n}.txt", f"line {n} of many") for n in range(500))
    texts = "SELECT value || '.txt' AS path, 'line ' || value || ' of many' AS text FROM generate_series(0, 499)"
    if kind == "arrow":
        return con.sql(texts)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(con.sql(texts))
    # A batch that begins inside its buffers.
    text = pyarrow.concat_tables([table.slice(0, 7), table])["text"].cast(pyarrow.large_string())
    content = text.combine_chunks().cast(pyarrow.large_binary()).slice(7)
    no_text = pyarrow.nulls(500, pyarrow.string())
    return pyarrow.table({"path": table["path"], "text": no_text, "content": content})


def test_rows_with_two_texts_are_refused(folder):
    pyarrow = pytest.importorskip("pyarrow")
    rows = pyarrow.table({"text": ["new", "same"], "content": [b"old", b"same"]})
    with pytest.raises(tadoc.Error, match=r"text and content of 1 row\(s\) hold different texts"):
        tadoc.ingest(rows, "rows.tadoc")


@pytest.mark.parametrize("kind", ["pairs", "arrow", "content"])
def test_progress_of_rows(kind, con, monkeypatch, folder):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("datafusion_tadoc._progress.SHOW_AFTER", 0)
    monkeypatch.setattr("datafusion_tadoc._progress.DRAW_EVERY", 0)
    assert tadoc.ingest(documents_of(kind, con), "rows.tadoc", progress=True) == "rows.tadoc"
    lines, summary = sys.stderr.getvalue().rsplit("\r\x1b[K", 1)
    assert re.fullmatch(SUMMARY, summary).group(1) == "rows.tadoc"
    assert re.search(r"^\r\x1b\[K[\d,]+ documents?, [\d.]+ (kB|bytes) of text, [\d.]+ MB/s", lines)
    assert "\r\x1b[K500 documents, 7.9 kB of text, " in lines
    assert ("\r\x1b[K1 document, 14 bytes of text, " in lines) == (kind == "pairs")


def test_progress_without_a_terminal_is_a_summary(con, capsys, folder):
    tadoc.ingest(documents_of("pairs", con), folder / "rows.tadoc", progress=True)
    assert re.fullmatch(SUMMARY, capsys.readouterr().err).group(1) == str(folder / "rows.tadoc")
    tadoc.ingest(documents_of("pairs", con), "quiet.tadoc")
    assert capsys.readouterr().err == ""
    tadoc.ingest([], "none.tadoc", progress=True, allow_empty=True)
    assert capsys.readouterr().err.startswith("none.tadoc: 0 documents, 0 bytes of text in ")


def test_the_summary_is_that_of_the_command(con, capfd, folder):
    (folder / "notes").mkdir()
    for path, text in documents_of("pairs", con):
        (folder / "notes" / path).write_text(text)
    tadoc.ingest("notes", "rows.tadoc", progress=True)
    of_files = capfd.readouterr().err.splitlines()[0]
    tadoc.ingest(sorted(documents_of("pairs", con)), "rows.tadoc", progress=True, overwrite=True)
    assert capfd.readouterr().err.splitlines()[0] == of_files


def test_a_failing_source_or_progress_leaves_nothing(con, monkeypatch, folder):
    class Broken(Terminal):
        def write(self, text):
            raise BrokenPipeError("of the terminal")

    def source():
        yield "a.txt", "to be"
        raise ZeroDivisionError("of the source")

    with pytest.raises(ZeroDivisionError):
        tadoc.ingest(source(), "x.tadoc", progress=True)
    monkeypatch.setattr("datafusion_tadoc._progress.SHOW_AFTER", 0)
    monkeypatch.setattr(sys, "stderr", Broken())
    with pytest.raises(BrokenPipeError):
        tadoc.ingest(documents_of("pairs", con), "x.tadoc", progress=True)
    assert list(folder.iterdir()) == []


def test_optimize_prints_nothing(capfd):
    corpus = tadoc.open("living", create=True)
    corpus.append([("a.txt", "to be")])
    corpus.edit(0, text=" or not")
    corpus.optimize()
    assert capfd.readouterr() == ("", "")


def test_living_corpora(con):
    corpus = tadoc.open("living", create=True, connection=con)
    corpus.append([("a.txt", "to be"), ("b.bin", b"\xff")])
    corpus.append(con.sql("SELECT 'or not' AS text, 'c.txt' AS path"))
    corpus.edit(0, text=" or not")
    corpus.edit(0, pos=0, len_bytes=3)
    corpus.drop([1])
    expected = [(0, "a.txt", "be or not"), (2, "c.txt", "or not")]
    in_order = sorted((row[0], row[1], row[4]) for row in corpus.documents().rows())
    assert in_order == expected
    corpus.optimize()
    again = tadoc.open("living")
    assert sorted((row[0], row[1], row[4]) for row in again.documents().rows()) == expected
    assert len(again.history().rows()) == 7
    with pytest.raises(tadoc.Error):
        tadoc.open("no_such_folder")
    for wrong in ["12", b"0", [0.7], [True], ["0"], [None]]:
        with pytest.raises(TypeError):
            corpus.drop(wrong)
    with pytest.raises(TypeError, match="text is a str"):
        corpus.edit(0, text=b"bytes")
    assert sorted((row[0], row[1], row[4]) for row in again.documents().rows()) == expected


def test_living_corpora_have_user_columns():
    pa = pytest.importorskip("pyarrow")
    corpus = tadoc.open("letters", create=True, columns={"author": "VARCHAR", "Year": "INT"})
    corpus.append(pa.table({"path": ["a"], "text": ["Dear"], "author": ["Ada"], "Year": [1843]}))
    corpus.append([("b", "no author")])
    again = tadoc.open("letters")
    rows = again.connection.sql(f'SELECT path, author, "Year" FROM {again.table} ORDER BY doc_id').rows()
    assert rows == [("a", "Ada", 1843), ("b", None, None)]


def test_a_source_without_documents_writes_nothing(con, folder):
    (folder / "empty").mkdir()
    rows = con.sql("SELECT 'a' AS text WHERE false")
    for source in [[], rows, "empty"]:
        with pytest.raises(tadoc.Error, match="allow_empty=True"):
            tadoc.ingest(source, "none.tadoc")
        assert not (folder / "none.tadoc").exists()
        # So the next try needs no `overwrite`.
        tadoc.ingest([("a", "b")], "none.tadoc")
        with pytest.raises(tadoc.Error):
            tadoc.ingest(source, "none.tadoc", overwrite=True)
        assert con.documents("none.tadoc").rows()[0][4] == "b"
        tadoc.ingest(source, "none.tadoc", overwrite=True, allow_empty=True)
        assert con.documents("none.tadoc").rows() == []
        (folder / "none.tadoc").unlink()


def test_a_path_is_stored_once(con, folder):
    corpus = tadoc.open("living", create=True)
    corpus.append((f"{n}.txt", "text") for n in range(1000))
    more = con.sql("SELECT 'new.txt' AS path, 'text' AS text UNION ALL SELECT '7.txt', 'text'")
    for source in [[("new.txt", "a"), ("7.txt", "b")], (pair for pair in [("7.txt", b"b")]), more]:
        with pytest.raises(tadoc.Error, match="living: a document 7.txt is there already; nothing was added"):
            corpus.append(source)
    assert len(corpus.documents().rows()) == 1000
    corpus.append([("7.txt", "b")], duplicate=True)
    corpus.append(more, duplicate=True)
    corpus.append([("other.txt", "b")])
    assert len(corpus.documents().rows()) == 1004
    corpus.drop(row[0] for row in corpus.documents() if row[1] == "7.txt")
    corpus.append([("7.txt", "again")])
    with pytest.raises(TypeError):
        corpus.append(7)


def test_appends_at_the_same_time_store_a_path_once():
    corpus = tadoc.open("living", create=True)
    started = threading.Barrier(4)

    def append(at):
        started.wait()
        corpus.append((f"{n}.txt", f"text {at}") for n in range(50 * (at % 2 + 1)))

    with ThreadPoolExecutor(4) as pool:
        errors = [future.exception() for future in [pool.submit(append, at) for at in range(4)]]
    assert sorted(error is None for error in errors) == [False, False, False, True]
    assert all("is there already; nothing was added" in str(error) for error in errors if error is not None)
    paths = [row[1] for row in corpus.documents()]
    assert len(paths) == len(set(paths))


def test_a_corpus_is_kept_in_step_with_a_folder(folder):
    notes = folder / "notes"
    notes.mkdir()
    for name in ["a.txt", "b.txt", "page.html"]:
        (notes / name).write_text(f"<p>{name}")
    corpus = tadoc.open("living", create=True)
    assert corpus.sync(notes, dry_run=True) == {"added": 3, "changed": 0, "dropped": 0, "unchanged": 0}
    assert corpus.documents().rows() == []
    assert corpus.sync("notes") == {"added": 3, "changed": 0, "dropped": 0, "unchanged": 0}
    (notes / "a.txt").write_text("changed")
    (notes / "b.txt").unlink()
    assert corpus.sync(notes, html="text") == {"added": 0, "changed": 2, "dropped": 1, "unchanged": 0}
    assert sorted((row[1], row[4]) for row in corpus.documents()) == [("a.txt", "changed"), ("page.html", "page.html\n")]
    assert corpus.sync(notes, html="text", glob="*.txt") == {"added": 0, "changed": 0, "dropped": 1, "unchanged": 1}
    assert corpus.sync(notes, office="members", glob="*.txt")["unchanged"] == 1
    (notes / "a.txt").rename(notes / "c.txt")
    with pytest.raises(tadoc.Error, match="drop_all=True drops them"):
        corpus.sync(notes, glob=["*.txt", "*.md"])
    with pytest.raises(tadoc.Error, match="nowhere"):
        corpus.sync("nowhere")
    assert corpus.sync(notes, drop_all=True)["added"] == 2
    assert [row[0] for row in corpus.documents() if row[1] == "c.txt"] != []


def test_documents_that_are_not_there_are_not_dropped(folder):
    corpus = tadoc.open("living", create=True)
    corpus.append([("a.txt", "a"), ("b.txt", "b")])
    for wrong, text in [([9999], "no document 9999;"), ([0, -1], "no document -1;"), ([5, 0, 6], "5 and 1 more")]:
        with pytest.raises(tadoc.Error, match=text):
            corpus.drop(wrong)
    with pytest.raises(tadoc.Error):
        corpus.edit(99, text="x")
    assert [row[0] for row in corpus.documents()] == [0, 1]
    corpus.drop([1, 1])
    with pytest.raises(tadoc.Error, match="no document 1; nothing was dropped"):
        corpus.drop([0, 1])
    assert [row[0] for row in corpus.documents()] == [0]
