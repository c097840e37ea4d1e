"""Variables of Python as tables of statements."""

import threading

import pytest

import datafusion_tadoc as tadoc

pa = pytest.importorskip("pyarrow")

of_the_module = pa.table({"n": [40, 2]})
sentence = "no rows"


def test_frames_tables_and_lists_are_found_by_name(con):
    table = pa.table({"n": [1, 2]})
    dictionaries = [{"n": 1}, {"n": 2, "word": "be"}]
    columns = {"n": [1, 2]}
    result = con.sql("SELECT * FROM (VALUES (1), (2)) AS t (n)")
    for name in ["table", "dictionaries", "columns", "result"]:
        name = '"table"' if name == "table" else name
        assert con.sql(f"SELECT sum(n) FROM {name}").rows() == [(3,)], name
    assert con.sql("SELECT word FROM dictionaries ORDER BY n").rows() == [(None,), ("be",)]
    assert tadoc.sql("SELECT sum(n) FROM columns").rows() == con.execute("SELECT sum(n) FROM result").rows() == [(3,)]
    assert table and dictionaries and columns
    assert con.sql("SELECT sum(n) FROM of_the_module").rows() == [(42,)]


def test_frames_of_other_packages_are_found(con):
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    frame, lazy, other = polars.DataFrame({"n": [1]}), polars.LazyFrame({"n": [2]}), pandas.DataFrame({"n": [3]})
    assert con.sql("SELECT * FROM frame UNION ALL SELECT * FROM lazy UNION ALL SELECT * FROM other ORDER BY n").rows() == [
        (1,),
        (2,),
        (3,),
    ]
    con.register("lists", [{"n": 7}])
    assert con.sql("SELECT n FROM lists").rows() == [(7,)]
    assert frame is not None and lazy is not None and other is not None


def test_names_are_those_of_the_statement(con):
    Frame = pa.table({"n": [1, 2, 3]})
    assert con.sql("SELECT Frame.n FROM Frame WHERE n > 1 ORDER BY n").rows() == [(2,), (3,)]
    assert con.sql("SELECT f.n, g.n FROM Frame AS f JOIN Frame AS g ON f.n = g.n + 2").rows() == [(3, 1)]
    assert con.sql("SELECT n FROM (SELECT max(n) AS n FROM Frame)").rows() == [(3,)]
    assert con.sql("SELECT count(*) FROM (VALUES (1)) t (x) WHERE x IN (SELECT n FROM Frame)").rows() == [(1,)]
    with pytest.raises(tadoc.Error, match="No field named word. Valid fields are .*rame.*n"):
        con.sql("SELECT word FROM Frame")
    # Tables and WITH come first.
    con.sql("CREATE TABLE frame AS SELECT 7 AS n")
    assert con.sql("SELECT n FROM Frame").rows() == [(7,)]
    assert con.sql("WITH of_the_module AS (SELECT 5 AS n) SELECT n FROM of_the_module").rows() == [(5,)]
    assert Frame


def test_rows_are_those_of_the_moment(con):
    numbers = [{"n": 1}]
    before = con.sql("SELECT n FROM numbers")
    numbers = [{"n": 2}]
    assert (before.rows(), con.sql("SELECT n FROM numbers").rows()) == ([(1,)], [(2,)])
    assert con.sql("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'").rows() == [(0,)]
    assert numbers


def test_statements_write_variables(con, folder):
    letters = [{"path": "a.txt", "text": "Dear Ada"}]
    con.sql("COPY (SELECT * FROM letters) TO 'letters.tadoc' STORED AS TADOC")
    assert con.documents("letters.tadoc").rows()[0][4] == "Dear Ada"
    con.sql("CREATE TABLE kept AS SELECT * FROM letters; INSERT INTO kept SELECT * FROM letters")
    assert con.sql("SELECT count(*) FROM kept").rows() == [(2,)]
    assert con.sql("EXPLAIN SELECT * FROM letters").rows()
    for changed in ["INSERT INTO letters VALUES ('b', 'c')", "DELETE FROM letters", "DROP TABLE letters",
                    "CREATE VIEW v AS SELECT * FROM letters"]:  # fmt: skip
        with pytest.raises(tadoc.Error):
            con.sql(changed)
    assert letters == [{"path": "a.txt", "text": "Dear Ada"}]


def test_only_the_caller_is_asked(con):
    hidden = [{"n": 1}]

    def ask():
        return con.sql("SELECT n FROM hidden")

    with pytest.raises(tadoc.Error, match=r"there is no table hidden.*con\.register\('hidden', rows\)"):
        ask()
    assert con.sql("SELECT n FROM hidden").rows() == [(1,)]
    assert hidden


def test_errors_say_what_a_variable_is(con):
    with pytest.raises(tadoc.Error, match=r"the variable sentence is a str, and no rows; con\.register\('sentence', rows\)"):
        con.sql("SELECT * FROM sentence")
    with pytest.raises(tadoc.Error, match="there is no table nothing, and no file of this name; con.register"):
        con.sql("SELECT * FROM nothing")
    broken = pa.RecordBatchReader.from_batches(of_the_module.schema, iter([7]))
    with pytest.raises(tadoc.Error, match="the variable broken"):
        con.sql("SELECT * FROM broken")
    assert broken


def test_variables_are_turned_off():
    numbers = [{"n": 1}]
    with pytest.raises(tadoc.Error, match="there is no table numbers"):
        tadoc.connect(variables=False).sql("SELECT * FROM numbers")
    assert numbers


def test_threads_see_their_own_variables(con):
    wrong = []

    def ask(mine):
        numbers = [{"n": mine}]
        for _ in range(30):
            if con.sql("SELECT n FROM numbers").rows() != [(mine,)]:
                wrong.append(mine)
        assert numbers

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def tables_of(con):
    return con.sql("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'").rows()


def test_overlap_takes_lists_and_frames(con, folder):
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    tadoc.ingest([("a", "to be or not to be"), ("b", "that is the question")], "train.tadoc")
    texts, shares = ["to be or so", "the question", "is"], [2 / 3, 1.0, None]
    for rows in [texts, tuple(texts), {"text": texts}, [{"text": text} for text in texts], pa.table({"text": texts}),
                 polars.DataFrame({"text": texts}), pandas.DataFrame({"text": texts}), con.sql("VALUES ($1), ($2), ($3)", texts)]:  # fmt: skip
        found = [(row[0], row[3]) for row in con.overlap("train.tadoc", rows, n=2)]
        assert found == [("0", shares[0]), ("1", shares[1]), ("2", shares[2])], type(rows)
    named = pa.table({"id": ["q7", "q8", "q9"], "text": texts})
    result = con.overlap("train.tadoc", named, n=2)
    # Each run reads the rows.
    assert [row[0] for row in result] == result.arrow()["text_id"].to_pylist() == ["q7", "q8", "q9"]
    assert tables_of(con) == [(1,)]
    reader = pa.RecordBatchReader.from_stream(result)
    del result
    assert reader.read_all().num_rows == 3
    assert tables_of(con) == [(0,)]


def test_overlap_refuses_what_has_no_texts(con, folder):
    tadoc.ingest([("a", "to be")], "train.tadoc")
    for rows in [7, object(), [7, 8]]:
        with pytest.raises((tadoc.Error, TypeError)):
            con.overlap("train.tadoc", rows)
    with pytest.raises(tadoc.Error, match="text"):
        con.overlap("train.tadoc", [{"a": 1, "b": 2}]).rows()
    assert con.overlap("train.tadoc", []).rows() == []
    assert tables_of(con) == [(0,)]
