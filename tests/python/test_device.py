"""Texts of GSST columns on a device, without any other package.

`REQUIRE_GPU=1` makes a missing device a failure. Without it the test of the device says that it is skipped.
"""

import ctypes
import os

import pytest

import datafusion_tadoc as tadoc

# Nulls, columns of nulls, texts of more and of fewer bytes than a view holds, and any bytes.
ROWS = """SELECT value AS id,
    CASE WHEN value % 11 > 0 THEN 'https://shop.example/item/' || value || '?page=' || (value % 7) END AS url,
    CASE WHEN value % 5 > 0 THEN arrow_cast(repeat(chr(value % 90 + 33), value % 9), 'Binary') END AS raw,
    CAST(NULL AS VARCHAR) AS empty
FROM generate_series(1, 5000)"""


def test_files_and_columns_are_checked_before_the_device(folder, con):
    tadoc.write_gsst(con.sql(ROWS), "t.parquet", ["url"])
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


def address_of(capsule, name):
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get_pointer(capsule, name)


def format_of(capsule):
    """The format of a schema, its first field."""
    return ctypes.c_char_p.from_address(address_of(capsule, b"arrow_schema")).value


def on_host(capsule):
    """Reads the rows of a device array back."""
    device_array = ArrowDeviceArray.from_address(address_of(capsule, b"arrow_device_array"))
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
def test_strings_on_the_device(column, folder, con):
    tadoc.write_gsst(con.sql(ROWS), "t.parquet", row_group_rows=2_000)
    try:
        arrays = tadoc.device_arrays("t.parquet", column)
    except tadoc.Error as error:
        assert "NVIDIA" in str(error)
        if os.environ.get("REQUIRE_GPU") == "1":
            raise
        pytest.skip(f"no device: {error}")
    assert [len(array) for array in arrays] == [2_000, 2_000, 1_000]
    texts = [text for (text,) in con.sql(f"SELECT {column} FROM ({ROWS}) ORDER BY id").rows()]
    expected = [text.encode() if isinstance(text, str) else text for text in texts]
    for _ in range(2):  # Each call decodes anew.
        rows = []
        for array in arrays:
            schema, device_array = array.__arrow_c_device_array__()
            assert format_of(schema) == (b"z" if column == "raw" else b"u")
            rows += on_host(device_array)
        assert rows == expected
    with pytest.raises(NotImplementedError):
        arrays[0].__arrow_c_device_array__(None, stream=1)
