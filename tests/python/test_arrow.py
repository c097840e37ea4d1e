"""Round trips through other packages, where they are installed."""

from decimal import Decimal

import pytest

import datafusion_tadoc as tadoc

SQL = "SELECT path, bytes, [words, doc_id] AS numbers, text FROM documents('plays.tadoc') ORDER BY doc_id"


def test_pyarrow(plays, con):
    pa = pytest.importorskip("pyarrow")
    expected = con.sql(SQL).rows()
    table = con.sql(SQL).arrow()
    assert [tuple(row.values()) for row in table.to_pylist()] == expected
    con.register("t", table)
    assert con.sql("SELECT * FROM t").rows() == expected
    con.register("t", table.to_batches()[0])
    assert con.sql("SELECT * FROM t").rows() == expected
    tadoc.ingest(table.select(["path", "text"]), "again.tadoc")
    assert con.sql("SELECT path, text FROM documents('again.tadoc') ORDER BY doc_id").rows() == [
        (path, text) for path, _, _, text in expected
    ]
    with pytest.raises(tadoc.Error):
        con.register("t", pa.chunked_array([[1, 2]]))


def test_rows_that_are_null_are_an_error(con, folder):
    pa = pytest.importorskip("pyarrow")
    rows = pa.array([{"text": "to be"}, None, {"text": None}])
    streamed = pa.chunked_array([[{"text": "so"}], rows])
    for source in [rows, streamed, streamed.slice(1)]:
        for take in [
            lambda: con.register("t", source),
            lambda: tadoc.ingest(source, "rows.tadoc"),
            lambda: tadoc.write_gsst(source, "rows.parquet"),
        ]:
            with pytest.raises(tadoc.Error, match="1 of 3 are null"):
                take()
    assert list(folder.iterdir()) == []
    for source in [rows.drop_null(), streamed.slice(1).drop_null(), pa.chunked_array([rows.drop_null()])]:
        con.register("t", source)
        assert con.sql("SELECT text FROM t").rows() == [("to be",), (None,)]


def test_types_that_libraries_read_wrongly(con):
    pa = pytest.importorskip("pyarrow")
    values = [Decimal("1.00"), None, Decimal("-2.50"), Decimal("3.00")]
    narrow = pa.array(values, pa.decimal128(7, 2))
    con.register(
        "t",
        pa.table(
            {
                "d64": narrow.cast(pa.decimal64(7, 2)),
                "d32": narrow.cast(pa.decimal32(7, 2)),
                "texts": pa.array([["a", None], None, [], ["b"]], pa.list_(pa.string_view())),
                "views": pa.array([[1, None], None, [], [2]], pa.list_view(pa.int64())),
                "struct": pa.array([{"x": "a"}, None, {"x": None}, {"x": "b"}], pa.struct({"x": pa.string_view()})),
            }
        ),
    )
    result = con.sql("SELECT * FROM t")
    assert [row[0] for row in result.rows()] == [row[1] for row in result.rows()] == values
    assert [row[3] for row in result.rows()] == [[1, None], None, [], [2]]
    polars = pytest.importorskip("polars")
    frame = result.pl()
    assert frame["d64"].to_list() == frame["d32"].to_list() == values
    assert frame["views"].to_list() == [[1, None], None, [], [2]]
    assert isinstance(frame, polars.DataFrame)
    pytest.importorskip("pandas")
    texts = [None if value is None else list(value) for value in result.df()["texts"]]
    assert texts == [["a", None], None, [], ["b"]]


def test_streams_that_fail_and_streams_without_rows(con):
    pa = pytest.importorskip("pyarrow")
    schema = pa.schema({"text": pa.string()})

    def batches():
        yield pa.record_batch({"text": ["a"]})
        raise RuntimeError("no more")

    with pytest.raises(tadoc.Error, match="no more"):
        con.register("t", pa.RecordBatchReader.from_batches(schema, batches()))
    con.register("t", pa.RecordBatchReader.from_batches(schema, []))
    assert con.sql("SELECT * FROM t").rows() == []
    once = pa.RecordBatchReader.from_batches(schema, [pa.record_batch({"text": ["a"]})])
    capsule = once.__arrow_c_stream__()

    class Again:
        def __arrow_c_stream__(self, requested_schema=None):
            return capsule

    con.register("t", Again())
    with pytest.raises(tadoc.Error, match="read already"):
        con.register("t", Again())
    assert con.sql("SELECT * FROM t").rows() == [("a",)]


def test_streams_come_batch_by_batch(con):
    pa = pytest.importorskip("pyarrow")
    endless = con.sql("SELECT value FROM generate_series(1, 1000000000000)")
    reader = pa.RecordBatchReader.from_stream(endless)
    assert reader.read_next_batch()["value"][0].as_py() == 1
    del reader
    fails = con.sql("SELECT 1 / (value - 100000) AS x FROM generate_series(1, 200000)")
    with pytest.raises(Exception, match="[Dd]ivide by zero"):
        pa.RecordBatchReader.from_stream(fails).read_all()
    with pytest.raises(tadoc.Error, match="[Dd]ivide by zero"):
        fails.arrow()


def test_polars(plays, con):
    pl = pytest.importorskip("polars")
    expected = con.sql(SQL).rows()
    frame = con.sql(SQL).pl()
    assert frame.rows() == expected
    con.register("t", frame)
    assert con.sql("SELECT * FROM t").rows() == expected
    assert pl.DataFrame(con.sql(SQL)).rows() == expected


def test_pandas(plays, con):
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    expected = con.sql("SELECT path, bytes FROM documents('plays.tadoc') ORDER BY doc_id").rows()
    frame = con.sql("SELECT path, bytes FROM documents('plays.tadoc') ORDER BY doc_id").df()
    assert list(frame.itertuples(index=False, name=None)) == expected
    con.register("t", frame)
    assert con.sql("SELECT * FROM t").rows() == expected
