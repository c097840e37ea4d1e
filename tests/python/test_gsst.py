"""GSST columns from and to Arrow."""

import re
import threading

import pytest

import datafusion_tadoc as tadoc

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def table(num_rows=5_000):
    urls = [None if n % 11 == 0 else f"https://shop.example/item/{n}/reviews?page={n % 7}" for n in range(num_rows)]
    raw = [None if n % 5 == 0 else bytes([n % 256]) * (n % 9) for n in range(num_rows)]
    return pyarrow.table({
        "id": pyarrow.array(range(num_rows), pyarrow.int64()),
        "url": pyarrow.array(urls, pyarrow.string()),
        "raw": pyarrow.array(raw, pyarrow.binary()),
        "empty": pyarrow.array([None] * num_rows, pyarrow.string()),
    })  # fmt: skip


def plain(rows):
    return [column.to_pylist() for column in rows.columns]


@pytest.mark.parametrize("columns", [None, ["url"], ["raw", "url"], ["empty"]])
def test_rows_come_back(columns, folder):
    source = table()
    assert tadoc.write_gsst(source, "t.parquet", columns, row_group_rows=2_000) == "t.parquet"
    result = tadoc.read_gsst("t.parquet")
    assert result.columns == source.column_names
    assert plain(result.arrow()) == plain(source)
    assert plain(tadoc.read_gsst("t.parquet", ["raw", "id"]).arrow()) == plain(source.select(["raw", "id"]))
    # Other readers see the other columns, and a smaller file.
    assert parquet.read_table("t.parquet", columns=["id"]).column("id").to_pylist() == source["id"].to_pylist()
    assert parquet.ParquetFile("t.parquet").num_row_groups == 3
    # They do not find the text, and statements do.
    names = parquet.ParquetFile("t.parquet").schema_arrow.names
    assert not set(names) & set(columns or ["url", "raw", "empty"])
    with tadoc.connect() as con:
        rows = con.sql("SELECT count(*) AS n FROM 't.parquet' WHERE url LIKE '%/item/7/%'")
        assert rows.rows() == [(1,)]


def test_streams_are_written_as_they_come(folder):
    taken = []

    def batches():
        for start in range(20):
            taken.append(threading.get_ident())
            yield pyarrow.record_batch({"n": [start] * 1000, "text": [f"line {start} of {n}" for n in range(1000)]})

    schema = pyarrow.schema({"n": pyarrow.int64(), "text": pyarrow.string()})
    reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
    tadoc.write_gsst(reader, "s.parquet", ["text"])
    assert len(taken) == 20
    con = tadoc.connect()
    lines = tadoc.read_gsst("s.parquet", connection=con)
    con.register("lines", lines)
    assert con.sql("SELECT count(*), sum(n), count(DISTINCT text) FROM lines").rows() == [(20_000, 190_000, 20_000)]
    first = next(iter(pyarrow.RecordBatchReader.from_stream(lines)))
    assert first.num_rows > 0


def test_filters_run_on_codes(folder):
    tadoc.write_gsst(table(), "t.parquet")
    con = tadoc.connect()
    con.sql("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION 't.parquet'")
    assert con.sql("SELECT id FROM t WHERE url LIKE '%/item/77_/%page=3' ORDER BY id").rows() == [(773,)]


def test_errors(folder):
    with pytest.raises(TypeError, match="expected an Arrow object"):
        tadoc.write_gsst([1, 2], "t.parquet")
    with pytest.raises(TypeError, match="list of names"):
        tadoc.write_gsst(table(), "t.parquet", "url")
    for columns in [[], ["a,b"], ["nobody"], ["id"]]:
        with pytest.raises(tadoc.Error):
            tadoc.write_gsst(table(), "t.parquet", columns)
    for name in ["t", "t.csv", "t/"]:
        with pytest.raises(tadoc.Error, match="ends with .parquet"):
            tadoc.write_gsst(table(), name)
    assert list(folder.iterdir()) == []
    with pytest.raises(tadoc.Error, match="nowhere"):
        tadoc.read_gsst("nowhere.parquet").rows()
    tadoc.write_gsst(table(), "t.parquet")
    with pytest.raises(tadoc.Error, match="nobody"):
        tadoc.read_gsst("t.parquet", ["nobody"])
    whole = (folder / "t.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[:-9])
    with pytest.raises(tadoc.Error):
        tadoc.read_gsst("cut.parquet").rows()


def test_a_source_that_fails_leaves_no_file(folder):
    def batches():
        yield pyarrow.record_batch({"text": ["a"]})
        raise RuntimeError("no more")

    reader = pyarrow.RecordBatchReader.from_batches(pyarrow.schema({"text": pyarrow.string()}), batches())
    with pytest.raises(Exception, match="no more"):
        tadoc.write_gsst(reader, "f.parquet")
    assert not (folder / "f.parquet").exists()


def test_a_file_is_replaced_only_if_asked(folder):
    tadoc.write_gsst(table(), "t.parquet")
    before = (folder / "t.parquet").read_bytes()
    one = pyarrow.table({"text": ["one"]})
    with pytest.raises(tadoc.Error, match=r"t\.parquet exists; choose another name, or replace it with overwrite=True"):
        tadoc.write_gsst(one, "t.parquet")
    for overwrite in [False, True]:
        with pytest.raises(tadoc.Error):
            tadoc.write_gsst(one.slice(0, 0), "t.parquet", overwrite=overwrite)
    assert (folder / "t.parquet").read_bytes() == before
    tadoc.write_gsst(one, "t.parquet", overwrite=True)
    assert tadoc.read_gsst("t.parquet").rows() == [("one",)]
    with pytest.raises(tadoc.Error, match="allow_empty=True"):
        tadoc.write_gsst(one.slice(0, 0), "empty.parquet")
    assert not (folder / "empty.parquet").exists()
    tadoc.write_gsst(one.slice(0, 0), "empty.parquet", allow_empty=True)
    assert tadoc.read_gsst("empty.parquet").rows() == []


def test_errors_name_no_table_of_this_package(folder):
    tadoc.write_gsst(pyarrow.table({"id": [1], "text": ["a"]}), "t.parquet")
    corpus = tadoc.open("living", create=True)
    for fails in [
        lambda: tadoc.read_gsst("t.parquet", columns=["x"]),
        lambda: tadoc.read_gsst("nowhere.parquet").rows(),
        lambda: tadoc.ingest(pyarrow.table({"x": [1]}), "c.tadoc"),
        lambda: tadoc.write_gsst(pyarrow.table({"x": [1]}), "u.parquet", ["y"]),
        lambda: corpus.append(pyarrow.table({"x": [1]})),
        lambda: corpus.append(pyarrow.table({"path": [1], "text": ["a"], "x": [1]})),
        lambda: corpus.connection.sql(f"SELECT nothing FROM {corpus.table}"),
        lambda: corpus.connection.sql("SELECT * FROM livin"),
    ]:
        with pytest.raises(tadoc.Error) as error:
            fails()
        assert not re.search("[0-9a-f]{32}", str(error.value)), error.value
    with pytest.raises(tadoc.Error, match=r"No field named x\. .*\bid, text"):
        tadoc.read_gsst("t.parquet", columns=["x"])
