"""Texts of GSST columns on a device: without any other package, and as arrays of CuPy, PyTorch, numba and JAX where
those are installed.

`REQUIRE_GPU=1` makes a missing device a failure. Without it the tests of the device say that they are skipped.
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


ROW_GROUP_ROWS = [2_000, 2_000, 1_000]


def opened(column="url", **options):
    """The arrays of a file of `ROWS`, or the reason why the test is skipped."""
    try:
        return tadoc.device_arrays("t.parquet", column, **options)
    except tadoc.Error as error:
        assert "NVIDIA" in str(error)
        if os.environ.get("REQUIRE_GPU") == "1":
            raise
        pytest.skip(f"no device: {error}")


@pytest.fixture
def written(folder, con):
    tadoc.write_gsst(con.sql(ROWS), "t.parquet", row_group_rows=2_000)


def texts_of(con, column):
    rows = con.sql(f"SELECT {column} FROM ({ROWS}) ORDER BY id").rows()
    return [text.encode() if isinstance(text, str) else text for (text,) in rows]


@pytest.mark.parametrize("column", ["url", "raw", "empty"])
@pytest.mark.parametrize("ahead", [1, 2, 8])
def test_strings_on_the_device(column, ahead, written, con):
    arrays = opened(column, ahead=ahead)
    expected = texts_of(con, column)
    assert len(arrays) == 3
    for _ in range(2):  # Each loop decodes anew.
        rows = []
        for array in arrays:
            for _ in range(2):  # All capsules share the memory.
                schema, device_array = array.__arrow_c_device_array__()
                assert format_of(schema) == (b"z" if column == "raw" else b"u")
                of_array = on_host(device_array)
            assert array.null_count == of_array.count(None)
            rows += of_array
        assert rows == expected
    assert [len(arrays[i]) for i in range(3)] == ROW_GROUP_ROWS
    assert on_host(arrays[-1].__arrow_c_device_array__()[1]) == expected[-1_000:]
    for index in [3, -4]:
        with pytest.raises(IndexError):
            arrays[index]
    with pytest.raises(NotImplementedError):
        arrays[0].__arrow_c_device_array__(None, stream=1)
    with pytest.raises(tadoc.Error, match="ahead: got 0"):
        tadoc.device_arrays("t.parquet", column, ahead=0)


def with_cupy(buffer):
    cupy = pytest.importorskip("cupy")
    first, second = cupy.from_dlpack(buffer), cupy.asarray(buffer)
    assert (len(buffer) == 0 or first.data.ptr == second.data.ptr) and first.dtype == second.dtype
    return first, lambda array: array.get().tobytes()


def with_torch(buffer):
    torch = pytest.importorskip("torch")
    first, second = torch.from_dlpack(buffer), torch.as_tensor(buffer, device="cuda")
    assert (len(buffer) == 0 or first.data_ptr() == second.data_ptr()) and first.dtype == second.dtype
    return first, lambda tensor: tensor.cpu().numpy().tobytes()


def with_numba(buffer):
    cuda = pytest.importorskip("numba.cuda")
    return cuda.as_cuda_array(buffer), lambda array: array.copy_to_host().tobytes()


def with_jax(buffer):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    numpy = pytest.importorskip("numpy")
    return jax.dlpack.from_dlpack(buffer), lambda array: numpy.asarray(array).tobytes()


@pytest.mark.parametrize("column", ["url", "raw", "empty"])
@pytest.mark.parametrize("taken", [with_cupy, with_torch, with_numba, with_jax])
def test_parts_are_arrays_of_other_packages(taken, column, written, con):
    expected = texts_of(con, column)
    views = []
    for array in opened(column):
        validity = [] if array.validity is None else [taken(array.validity)]
        views.append([taken(array.text), taken(array.offsets), *validity])
        with pytest.raises(BufferError):
            array.text.__dlpack__(copy=True)
        with pytest.raises(BufferError):
            array.text.__dlpack__(dl_device=(1, 0))
        array.text.__dlpack__()  # A capsule that nobody takes is given back.
    # The arrays are gone, and the views keep their memory while other row groups are decoded.
    del array
    for _ in opened(column):
        pass
    row = 0
    for view in views:
        text, offsets, *validity = [copy(part) for part, copy in view]
        ends = memoryview(offsets).cast("i")
        bits = validity[0] if validity else None
        for i in range(len(ends) - 1):
            is_valid = bits is None or bits[i // 8] >> (i % 8) & 1 == 1
            assert (text[ends[i] : ends[i + 1]] if is_valid else None) == expected[row]
            row += 1
    assert row == len(expected)


def test_a_loop_may_be_left_and_ends_with_an_error(folder, con):
    tadoc.write_gsst(con.sql(ROWS), "t.parquet", ["url"], row_group_rows=2_000)
    for array in opened(ahead=1):
        assert len(array) == ROW_GROUP_ROWS[0]
        break
    stored = bytearray((folder / "t.parquet").read_bytes())
    arrays = opened()
    place = stored.find(b"GSST", stored.find(b"GSST") + 4)  # the second block
    stored[place + 200] ^= 1
    (folder / "t.parquet").write_bytes(stored)
    loop = iter(arrays)
    with pytest.raises(tadoc.Error, match="checksum"):
        list(loop)
    assert list(loop) == []
