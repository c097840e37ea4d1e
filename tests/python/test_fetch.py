"""Results as people who know DuckDB and Python's interface of databases take them."""

import itertools
import pickle
import subprocess
import sys

import pytest

import datafusion_tadoc as tadoc

#: Statements whose rows nobody waits for.
LONG = "SELECT value FROM generate_series(1, 100000000000)"


def test_the_module_has_a_connection(plays):
    assert tadoc.sql("SELECT path FROM documents($1) WHERE words > 10 ORDER BY path", [plays]).fetchall() == [
        ("hamlet.txt",),
        ("richard.txt",),
    ]
    tadoc.execute("CREATE TABLE kept AS SELECT 7 AS n")
    assert tadoc.sql("SELECT n FROM kept").fetchone() == (7,)
    assert tadoc.default_connection().unregister("kept")
    tadoc.default_connection().close()
    assert tadoc.sql("SELECT 1").fetchall() == [(1,)]


def test_rows_are_fetched_once(con):
    numbers = con.execute("SELECT value FROM generate_series(1, 20000)")
    assert numbers.fetchone() == (1,)
    assert numbers.fetchmany(2) == [(2,), (3,)]
    assert numbers.fetchmany() == [(4,)]
    assert numbers.fetchmany(0) == []
    rest = numbers.fetchall()
    assert (len(rest), rest[0], rest[-1]) == (20_000 - 4, (5,), (20_000,))
    assert (numbers.fetchone(), numbers.fetchmany(3), numbers.fetchall()) == (None, [], [])
    with pytest.raises(ValueError, match="size"):
        numbers.fetchmany(-1)
    assert len(numbers.rows()) == 20_000
    assert [name for name, *_ in numbers.description] == ["value"]


def test_statements_that_are_no_query_are_fetched(con):
    made = con.execute("CREATE TABLE t (n INT)")
    assert (made.fetchall(), made.fetchone(), list(made), len(made)) == ([], None, [], 0)
    inserted = con.execute("INSERT INTO t VALUES (2), (3)")
    assert inserted.fetchone() == (2,)
    assert list(inserted) == [(2,)]


def test_long_results_begin_at_once(con):
    endless = con.sql(LONG)
    assert endless.fetchone() == (1,)
    assert list(itertools.islice(endless, 3)) == [(1,), (2,), (3,)]
    assert bool(endless)
    assert not con.sql("SELECT 1 WHERE false")
    fails = con.sql("SELECT 1 / (value - 100000) AS x FROM generate_series(1, 200000)")
    rows = iter(fails)
    assert next(rows) == (0,)
    with pytest.raises(tadoc.Error, match="[Dd]ivide by zero"):
        list(rows)


def test_a_list_of_rows_runs_the_query_once(con, monkeypatch):
    numbers = con.sql("SELECT value FROM generate_series(1, 3)")
    runs = []

    class Counting:
        def __init__(self, statement):
            self.statement = statement

        def __getattr__(self, name):
            if name in ("gather", "batches"):
                runs.append(name)
            return getattr(self.statement, name)

    monkeypatch.setattr(numbers, "_statement", Counting(numbers._statement))
    for take in [list, tuple, sorted, set]:
        runs.clear()
        assert list(take(numbers)) == [(1,), (2,), (3,)] or take is set
        assert len(runs) == 1, (take, runs)
    assert len(numbers) == 3
    rows = iter(numbers)
    assert next(rows) == (1,)
    assert (len(numbers), list(rows)) == (3, [(2,), (3,)])


def test_one_thread_reads_an_iterator_at_a_time(con):
    running = con.sql(LONG)._statement.batches()
    assert len(running.next()) > 0
    done = con.sql("CREATE TABLE t AS SELECT 1 AS n")._statement.batches()
    assert (done.next().rows(), done.next()) == ([], None) or done.next() is None


def test_rows_have_the_names_of_duckdb(con):
    pytest.importorskip("pyarrow")
    result = con.sql("SELECT 1 AS one, 'be' AS word")
    for name in ["arrow", "fetch_arrow_table", "to_arrow_table"]:
        assert getattr(result, name)().to_pydict() == {"one": [1], "word": ["be"]}
    for name in ["fetch_record_batch", "to_arrow_reader"]:
        assert getattr(result, name)().read_all().to_pydict() == {"one": [1], "word": ["be"]}
    long = con.sql(LONG).fetch_record_batch()
    assert long.read_next_batch()["value"][0].as_py() == 1
    pytest.importorskip("pandas")
    for name in ["df", "fetchdf", "to_df"]:
        assert getattr(result, name)().to_dict("list") == {"one": [1], "word": ["be"]}


def test_a_result_shows_itself(con):
    assert repr(con.sql("SELECT 1 AS one")) == "+-----+\n| one |\n+-----+\n| 1   |\n+-----+"
    long = repr(con.sql("SELECT value, repeat('x', 100000) AS text FROM generate_series(1, 1000000)"))
    assert long.endswith("the first 10 rows; show() shows more") and len(long) < 2_000
    assert repr(con.sql("CREATE TABLE t (n INT)")) == "<Result: no rows>"
    assert "ivide by zero" in repr(con.sql("SELECT 1 / (value - 1) AS x FROM generate_series(1, 2)"))
    columns = ", ".join(f"{at} AS c{at}" for at in range(200))
    wide = con.sql(f"SELECT {columns}")._repr_html_()
    assert wide.count("<td>") == 50 and "the first 50 of 200 columns" in wide
    shown = con.sql("SELECT value FROM generate_series(1, 100)")._repr_mimebundle_()
    assert shown["text/html"].count("<td>") == 40 and shown["text/plain"].count("\n") == 43


def test_a_file_is_opened(plays):
    with tadoc.open(plays, table="plays") as con:
        assert con.sql("SELECT path FROM plays WHERE words > $1 ORDER BY path", [10]).fetchall() == [
            ("hamlet.txt",),
            ("richard.txt",),
        ]
        assert con.documents().fetchmany(2)[1][1] == "richard.txt"
        with pytest.raises(tadoc.Error):
            con.append([("a.txt", "to be")])
    with pytest.raises(tadoc.Error, match="closed"):
        con.sql("SELECT 1")
    with pytest.raises(tadoc.Error, match="expected a name of small letters"):
        tadoc.open(plays, table='a"b')


def test_tables_keep_user_columns(con):
    tadoc.ingest([{"path": "a", "text": "Dear Ada", "year": 1843}, {"text": "Dear Bob", "to": "Bob"}], "letters.tadoc")
    assert con.table("letters.tadoc").columns[-2:] == ["year", "to"]
    assert con.sql("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'living%'").rows() == [(0,)]
    assert [row[-2:] for row in con.table("letters.tadoc")] == [(1843, None), (None, "Bob")]
    tadoc.open("living", create=True, columns={"year": "INT"}).append([{"text": "so", "year": 7}])
    assert con.table("living").fetchone()[-1] == 7
    with pytest.raises(tadoc.Error, match="nowhere.tadoc"):
        con.table("nowhere.tadoc").rows()


def test_connections_and_corpora_are_pickled(plays):
    con = tadoc.connect(threads=1, device="cpu", memory_limit="4GiB", settings={"tadoc.max_hits": 7}, variables=False)
    con.sql("CREATE TABLE t AS SELECT 1")
    again = pickle.loads(pickle.dumps(con))
    for setting in ["tadoc.max_hits", "tadoc.device", "datafusion.execution.target_partitions"]:
        assert again.sql(f"SHOW {setting}").rows() == con.sql(f"SHOW {setting}").rows()
    for missing in ["t", "plays"]:
        with pytest.raises(tadoc.Error, match="there is no table"):
            again.sql(f"SELECT * FROM {missing}")
    with pytest.raises(TypeError, match="pickle its rows"):
        pickle.dumps(con.sql("SELECT 1"))
    con.close()
    with pytest.raises(tadoc.Error, match="closed"):
        pickle.dumps(con)
    corpus = tadoc.open(plays, table="plays")
    assert pickle.loads(pickle.dumps(corpus)).sql("SELECT count(*) FROM plays").rows() == [(4,)]


# What loaders of training data do: the parent opens, and each worker gets a pickled copy.
LOADER = """
import multiprocessing

import datafusion_tadoc as tadoc


class Texts:
    def __init__(self, corpus):
        self.corpus = corpus
        self.con = tadoc.connect(threads=1)

    def __len__(self):
        return len(self.con.sql("SELECT doc_id FROM documents($1)", [self.corpus]))

    def __getitem__(self, doc_id):
        return self.con.extract(self.corpus, doc_id).fetchone()[0]


if __name__ == "__main__":
    texts = Texts("plays.tadoc")
    with multiprocessing.get_context("spawn").Pool(2) as workers:
        print([len(text) for text in workers.map(texts.__getitem__, range(len(texts)))])
"""


def test_workers_open_anew(plays, con, folder):
    (folder / "loader.py").write_text(LOADER)
    said = subprocess.run([sys.executable, "loader.py"], capture_output=True, text=True, timeout=120, check=False)
    assert said.stdout.strip() == str([len(row[4]) for row in con.documents(plays)]), said.stderr
