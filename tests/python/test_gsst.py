"""GSST columns from and to Arrow, and on a device.

`REQUIRE_GPU=1` makes a missing device a failure. Without it the test of the device says that it is skipped.
"""

import ctypes
import os
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


def test_files_and_columns_are_checked_before_the_device(folder):
    tadoc.write_gsst(table(), "t.parquet", ["url"])
    with pytest.raises(tadoc.Error, match="nowhere.parquet"):
        tadoc.device_arrays("nowhere.parquet", "url")
    for column in ["id", "raw", "nobody"]:
        with pytest.raises(tadoc.Error, match=f"no GSST column \"{column}\"; those of the file: url"):
            tadoc.device_arrays("t.parquet", column)
    (folder / "text.parquet").write_text("no Parquet")
    with pytest.raises(tadoc.Error, match="text.parquet"):
        tadoc.device_arrays("text.parquet", "url")


class ArrowArray(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")]
    _fields_ += [("buffers", ctypes.POINTER(ctypes.c_void_p))]
    _fields_ += [(name, ctypes.c_void_p) for name in ("children", "dictionary", "release", "private_data")]


class ArrowDeviceArray(ctypes.Structure):
    _fields_ = [("array", ArrowArray), ("device_id", ctypes.c_int64), ("device_type", ctypes.c_int32)]
    _fields_ += [("sync_event", ctypes.c_void_p), ("reserved", ctypes.c_int64 * 3)]


def copied(address, len_bytes):
    """Copies memory of the device with the driver, in the primary context."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, bytes_here = ctypes.c_void_p(), ctypes.create_string_buffer(len_bytes)
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert len_bytes == 0 or cuda.cuMemcpyDtoH_v2(bytes_here, ctypes.c_uint64(address), ctypes.c_size_t(len_bytes)) == 0
    assert cuda.cuDevicePrimaryCtxRelease_v2(0) == 0
    return bytes_here.raw


def on_host(capsule):
    """Reads the rows of a device array back."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    device_array = ArrowDeviceArray.from_address(get_pointer(capsule, b"arrow_device_array"))
    array = device_array.array
    assert (device_array.device_type, device_array.device_id, array.n_buffers, array.offset) == (2, 0, 3, 0)
    validity, offsets, text = array.buffers[0], array.buffers[1], array.buffers[2]
    ends = memoryview(copied(offsets, 4 * (array.length + 1))).cast("i")
    bytes_of = copied(text, ends[array.length])
    bits = copied(validity, (array.length + 7) // 8) if array.null_count else None
    is_valid = [bits is None or bits[row // 8] >> (row % 8) & 1 == 1 for row in range(array.length)]
    assert is_valid.count(False) == array.null_count
    return [bytes_of[ends[row] : ends[row + 1]] if valid else None for row, valid in enumerate(is_valid)]


@pytest.mark.parametrize("column", ["url", "raw", "empty"])
def test_strings_on_the_device(column, folder):
    source = table()
    tadoc.write_gsst(source, "t.parquet", row_group_rows=2_000)
    try:
        arrays = tadoc.device_arrays("t.parquet", column)
    except tadoc.Error as error:
        assert "NVIDIA" in str(error)
        if os.environ.get("REQUIRE_GPU") == "1":
            raise
        pytest.skip(f"no device: {error}")
    assert [len(array) for array in arrays] == [2_000, 2_000, 1_000]
    expected = [text.encode() if isinstance(text, str) else text for text in source[column].to_pylist()]
    for _ in range(2):  # Each call decodes anew.
        rows = []
        for array in arrays:
            schema, device_array = array.__arrow_c_device_array__()
            assert pyarrow.DataType._import_from_c_capsule(schema) in (pyarrow.string(), pyarrow.binary())
            rows += on_host(device_array)
        assert rows == expected
    with pytest.raises(NotImplementedError):
        arrays[0].__arrow_c_device_array__(None, stream=1)
