"""Functions and tables in sessions of the released package `datafusion`."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import datafusion_tadoc as tadoc

datafusion = pytest.importorskip("datafusion")
pyarrow = pytest.importorskip("pyarrow")

import datafusion_tadoc.datafusion as bridge  # noqa: E402

# Every table function, with arguments in order. `@` is the corpus.
CALLS = [
    "documents(@)", "word_count(@)", "word_count(@, true)", "word_sort(@, 'case,accents')", "inverted_index(@)", "term_vector(@)",
    "tfidf(@)", "doc_term_matrix(@)", "tokens(@)", "sequence_count(@, 2)", "ranked_inverted_index(@, 2)",
    "cooccurrence(@, 3)", "repeated_phrases(@, 2)", "repeated_spans(@, 2)", "overlap(@, @, 2)",
    "near_duplicates(@, 0.1, 1)", "near_duplicate_clusters(@, 0.1, 1)", "log_templates(@, 0.5)",
    "search(@, '\"to b*\" OR horse')", "term_count(@, '/(?i)T[ho].*/')",
    "kwic(@, 'king', 2)", "grep(@, '(?i)to be')", "collocates(@, 'be')", "keyness(@, @)", "dispersion(@, 'be')",
    "rank(@, 'horse OR king')", "context(@, 1, 1, 1)", "extract(@, 1, 2, 5)", "corpus_info(@)", "corpus_verify(@)", "read_text('*.md')",
    "read_lines('*.md')", "ingestion_model(12)", "tadoc_functions()",
]  # fmt: skip
SCALARS = [
    "extract_text('plays.tadoc', doc_id, 0, 9)", "count_word('plays.tadoc', doc_id, 'be')",
    "search_word('plays.tadoc', doc_id, 'horse')", "tokenize(path)", "text_quality(text)['words']", "language(text)['code']", "matches(text, 'horse OR \"to be\"')",
    "highlight(text, 'king')", "snippet(text, 'horse')",
    "parse(path, '{name}.{ending}')", "grok(text, '%{WORD:first} %{WORD:second}')", "logfmt('a=' || path, 'a')",
    "json_get('{\"a\": 7}', 'a')", "json_get_int('{\"a\": 7}', 'a')", "json_get_float('{\"a\": 7.5}', 'a')",
    "json_get_bool('{\"a\": true}', 'a')",
]  # fmt: skip


@pytest.fixture
def ctx(con):
    ctx = datafusion.SessionContext()
    bridge.register(ctx, con)
    return ctx


def rows(frame):
    """The rows of a frame of `datafusion`, as those of a result."""
    return rows_of(frame.to_arrow_table())


def rows_of(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def in_order(rows):
    return sorted(rows, key=repr)


@pytest.mark.parametrize("call", CALLS)
def test_rows_are_those_of_the_module(call, plays, con, ctx, folder):
    (folder / "notes.md").write_text("one line\nand another\n")
    sql = f"SELECT * FROM {call.replace('@', repr(plays))}"
    expected = con.sql(sql)
    got = ctx.sql(sql)
    assert got.schema().names == expected.columns
    assert in_order(rows(got)) == in_order(rows_of(expected.arrow()))


def test_all_functions_are_called(con):
    kinds = dict(bridge.functions(con))
    assert {name for name, kind in kinds.items() if kind == "table"} == {call.split("(")[0] for call in CALLS}
    assert {name for name, kind in kinds.items() if kind == "scalar"} == {call.split("(")[0] for call in SCALARS}


@pytest.mark.parametrize("call", SCALARS)
def test_scalars_are_those_of_the_module(call, plays, con, ctx):
    sql = f"SELECT doc_id, {call} AS answer FROM documents('plays.tadoc') ORDER BY doc_id"
    got = rows(ctx.sql(sql))
    assert got == rows_of(con.sql(sql).arrow())
    assert any(answer for _, answer in got)
    # No rows, and rows of which each has another constant.
    assert rows(ctx.sql(sql.replace("ORDER", "WHERE doc_id > 100 ORDER"))) == []


QUERIES = [
    "SELECT word FROM word_count(@) WHERE count > 1 AND word LIKE '%e%' ORDER BY word",
    "SELECT count(*) FROM documents(@)",
    "SELECT count(*), sum(count), max(word) FROM word_count(@) WHERE length(word) > 2",
    "SELECT path FROM documents(@) WHERE text LIKE '%horse%'",
    "SELECT path FROM documents(@) WHERE doc_id IN (1, 2) AND NOT bytes = 0 ORDER BY path DESC LIMIT 1",
    "SELECT bytes + 1 AS b, path FROM documents(@) ORDER BY doc_id OFFSET 1 LIMIT 2",
    "SELECT d.path, c.count FROM documents(@) d JOIN term_count(@, 'be') c ON d.doc_id = c.doc_id ORDER BY 1",
    "SELECT a.word FROM word_count(@) a JOIN word_count('other.tadoc') b ON a.word = b.word ORDER BY 1",
    "SELECT doc_id, count(*) FROM tokens(@) GROUP BY doc_id HAVING count(*) > 3 ORDER BY doc_id",
    "SELECT (SELECT count(*) FROM tokens(@)) AS n",
    "SELECT word FROM word_count(@) WHERE word IN (SELECT word FROM word_count('other.tadoc')) ORDER BY word",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_give_the_same_rows(query, plays, con, ctx):
    tadoc.ingest([("x", "to be king"), ("y", "king")], "other.tadoc")
    query = query.replace("@", repr(plays))
    got = rows(ctx.sql(query))
    assert got and got == rows_of(con.sql(query).arrow())


def test_filters_columns_and_limits_reach_the_corpus(plays, con, ctx):
    ctx.register_table("plays", bridge.table(plays, con))
    plan = ctx.sql("SELECT path FROM plays WHERE text LIKE '%horse%' LIMIT 1").execution_plan().display_indent()
    assert "TadocCrossing" in plan and "FilterExec" not in plan, plan
    assert rows(ctx.sql("SELECT path FROM plays WHERE text LIKE '%horse%' LIMIT 1")) == [("richard.txt",)]
    calls = f"SELECT word FROM word_count({plays!r}) WHERE count > 2 AND word <> 'to'"
    plan = ctx.sql(calls).execution_plan().display_indent()
    assert "TadocCrossing" in plan and "FilterExec" not in plan, plan
    assert rows(ctx.sql(calls)) == rows_of(con.sql(calls).arrow()) != []


def test_tables_keep_user_columns(con, ctx):
    tadoc.ingest([{"path": "a", "text": "Dear Ada", "year": 1843}, {"path": "b", "text": "Dear Bob"}], "letters.tadoc")
    ctx.register_table("letters", bridge.table("letters.tadoc", con))
    assert rows(ctx.sql("SELECT path, year FROM letters WHERE year > 1800")) == [("a", 1843)]
    plan = ctx.sql("SELECT path FROM letters WHERE year > 1800").execution_plan().display_indent()
    assert "FilterExec" not in plan, plan


def test_joins_with_tables_of_the_host(plays, con, ctx):
    wanted = pyarrow.table({"word": ["be", "horse", "nobody"], "weight": [1.5, 2.0, 3.0]})
    ctx.from_arrow(wanted, name="wanted")
    query = f"""SELECT w.word, c.count * w.weight AS score FROM wanted w
                LEFT JOIN word_count({plays!r}) c ON w.word = c.word ORDER BY w.word"""
    con.register("wanted", wanted)
    assert rows(ctx.sql(query)) == rows_of(con.sql(query).arrow()) == [("be", 6.0), ("horse", 6.0), ("nobody", None)]
    ids = pyarrow.table({"id": [0, 1, 1, None]})
    ctx.from_arrow(ids, name="ids")
    con.register("ids", ids)
    query = f"SELECT id, extract_text({plays!r}, id, 0, 5) AS text, count_word({plays!r}, id, 'be') FROM ids"
    assert rows(ctx.sql(query)) == rows_of(con.sql(query).arrow())


def test_results_are_tables(plays, con, ctx):
    ctx.register_table("words", con.word_count(plays, fold=True))
    assert rows(ctx.sql("SELECT count FROM words WHERE word = 'to'")) == [(4,)]
    tadoc.ingest([("x", "to")], plays, overwrite=True)
    assert rows(ctx.sql("SELECT count FROM words WHERE word = 'to'")) == [(1,)]
    ctx.register_table("one", con.sql("SELECT 1 AS n, 'x' AS \"Upper\""))
    assert rows(ctx.table("one")) == [(1, "x")]
    with pytest.raises(Exception, match="two columns have the name"):
        ctx.register_table("twice", con.sql("SELECT * FROM (SELECT 1 AS n) a, (SELECT 2 AS n) b"))
    con.sql("CREATE TABLE t (n INT)")
    with pytest.raises(Exception, match="only the rows of a query"):
        ctx.register_table("done", con.sql("INSERT INTO t VALUES (1)"))


def test_external_tables(plays, con, ctx):
    ctx.sql(f"CREATE EXTERNAL TABLE e STORED AS TADOC LOCATION {plays!r}")
    assert rows(ctx.sql("SELECT path FROM e WHERE doc_id = 1")) == [("richard.txt",)]
    with pytest.raises(Exception, match="nowhere.tadoc"):
        ctx.sql("CREATE EXTERNAL TABLE n STORED AS TADOC LOCATION 'nowhere.tadoc'")
    with pytest.raises(Exception, match="only read|connect"):
        ctx.sql("INSERT INTO e SELECT * FROM e").collect()
    for change in ["DELETE FROM e", "UPDATE e SET path = 'x'"]:
        with pytest.raises(Exception):
            ctx.sql(change).collect()


def test_tables_with_gsst_columns(con, ctx, folder):
    names = pyarrow.table({"id": [1, 2, 3], "url": ["https://a.example/x", None, "https://b.example/y"]})
    (folder / "parts").mkdir()
    tadoc.write_gsst(names, "parts/one.parquet")
    tadoc.write_gsst(names, "parts/two.parquet", ["url"])
    for location, num_rows in [("parts/one.parquet", 3), ("parts/", 6), ("parts/t*.parquet", 3)]:
        create = f"CREATE EXTERNAL TABLE g STORED AS GSST LOCATION '{location}'"
        ctx.sql(create)
        con.sql(create)
        assert rows(ctx.sql("SELECT count(*) FROM g")) == [(num_rows,)]
        query = "SELECT url, id FROM g WHERE url LIKE '%b.example%' OR url IS NULL ORDER BY id LIMIT 5"
        assert rows(ctx.sql(query)) == rows_of(con.sql(query).arrow()) != []
        plan = ctx.sql("SELECT id FROM g WHERE url LIKE '%y'").execution_plan().display_indent()
        assert "TadocCrossing" in plan and "FilterExec" not in plan, plan
        ctx.sql("DROP VIEW g")
        con.sql("DROP TABLE g")
    with pytest.raises(Exception, match="connect"):
        ctx.sql("CREATE EXTERNAL TABLE g STORED AS GSST LOCATION 'parts/'")
        ctx.sql("INSERT INTO g SELECT * FROM g").collect()
    with pytest.raises(Exception, match="nowhere"):
        ctx.sql("CREATE EXTERNAL TABLE n STORED AS GSST LOCATION 'nowhere.parquet'")
    (folder / "text.parquet").write_text("no Parquet")
    with pytest.raises(Exception, match="(?i)parquet"):
        ctx.sql("CREATE EXTERNAL TABLE n STORED AS GSST LOCATION 'text.parquet'")
    with pytest.raises(tadoc.Error, match="got 'PARQUET', expected one of TADOC, GSST"):
        bridge.table_factory(con, "PARQUET")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM word_count('nowhere.tadoc')", "nowhere.tadoc"),
        ("SELECT * FROM word_count(7)", "corpus: got 7, expected text"),
        ("SELECT * FROM search('plays.tadoc', '\"open')", "quote that is not closed"),
        ("SELECT * FROM word_count('plays.tadoc', fold => true)", "^Error during planning: Unsupported function argument "
         "type: fold => true$"),
        ("SELECT matches('to be', 'BE', fold => true)", "^Error during planning: Function 'matches' does not support named "
         "arguments$"),
        ("SELECT * FROM word_count('plays.tadoc', 'yes')", "fold: got 'yes'"),
        ("SELECT count_word('nowhere.tadoc', 0, 'be')", "nowhere.tadoc"),
        ("SELECT count_word(path, doc_id, 'be') FROM documents('plays.tadoc')", "the same for all rows"),
        ("SELECT * FROM documents('damaged.tadoc')", "damaged.tadoc"),
    ],
)
def test_errors_are_exceptions(sql, message, plays, ctx, folder):
    whole = (folder / plays).read_bytes()
    (folder / "damaged.tadoc").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Exception, match=message):
        ctx.sql(sql).collect()
    # The session goes on.
    assert rows(ctx.sql("SELECT count(*) FROM documents('plays.tadoc')")) == [(4,)]


def test_limits_and_settings_are_those_of_the_connection(plays):
    ctx = datafusion.SessionContext()
    bridge.register(ctx, tadoc.connect(settings={"tadoc.max_hits": 1}))
    with pytest.raises(Exception, match="max_hits"):
        ctx.sql("SELECT * FROM search('plays.tadoc', 'be')").collect()
    with pytest.raises(Exception, match="max_hits"):
        ctx.sql("SELECT search_word('plays.tadoc', doc_id, 'horse') FROM documents('plays.tadoc')").collect()


def test_threads_share_a_context(plays, con, ctx):
    sql = f"SELECT word, count FROM word_count({plays!r}) ORDER BY word"
    expected = rows(ctx.sql(sql))
    with ThreadPoolExecutor(8) as pool:
        assert all(got == expected for got in pool.map(lambda _: rows(ctx.sql(sql)), range(64)))


def test_streams_end_early_and_the_interpreter_ends(plays):
    code = f"""
import datafusion, datafusion_tadoc.datafusion as bridge, datafusion_tadoc as tadoc
ctx = datafusion.SessionContext()
con = tadoc.connect()
bridge.register(ctx, con)
ctx.register_table("many", con.sql("SELECT value FROM generate_series(1, 100000000000)"))
first = next(iter(ctx.sql("SELECT value FROM many").execute_stream()))
print(first.to_pyarrow().num_rows > 0, flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


def test_other_versions_are_refused(con, monkeypatch):
    ctx = datafusion.SessionContext()
    for version in ["54.1.0", "56.0.0", "nightly"]:
        monkeypatch.setattr(datafusion, "__version__", version)
        with pytest.raises(tadoc.Error, match=f"version {version}, expected 55"):
            bridge.register(ctx, con)
        for register in [
            lambda: ctx.register_table("t", con.sql("SELECT 1 AS n")),
            lambda: datafusion.udtf(bridge.table_function(con, "word_count"), "word_count"),
            lambda: datafusion.udf(bridge.scalar_function(con, "tokenize")),
            lambda: ctx.register_table_factory("TADOC", bridge.table_factory(con)),
        ]:
            with pytest.raises(Exception, match="expected 55"):
                register()


def test_docstrings_are_true():
    import doctest

    results = doctest.testmod(bridge)
    assert results.attempted > 10 and results.failed == 0
