"""Measures text of a GSST column on its way from the page cache to the memory of a GPU, in Python, beside pyarrow.

    tpchgen-cli parquet -s 10 --tables=lineitem
    tadoc sql -c "COPY (SELECT l_comment FROM 'lineitem.parquet') TO 'gsst.parquet' STORED AS GSST"
    tadoc sql -c "SET datafusion.execution.target_partitions = 1; CREATE EXTERNAL TABLE t STORED AS GSST
        LOCATION 'gsst.parquet'; COPY (SELECT arrow_cast(l_comment, 'Utf8') AS l_comment FROM t)
        TO 'plain.parquet' STORED AS PARQUET"
    python3 benches/peers/device_arrays.py gsst.parquet l_comment --plain plain.parquet

A run takes all row groups through `device_arrays`, makes CuPy arrays of the text and the offsets of each, and lets them go
(or keeps all, with --keep). The peer reads the same column of --plain with pyarrow, on all cores, row group by row
group, and copies text and offsets to the device with CuPy. Rates are GB of text in a second of wall time, the fastest and
the median of --runs. In the first run all text and all offsets are compared with pyarrow's. Both files are read once
before, so that they are in the page cache. Needs a device, CuPy, numpy and pyarrow.
"""

import argparse
import importlib
import os
import statistics
import time

import cupy
import numpy
import pyarrow.parquet


def parts_of(array):
    """The text of an array of pyarrow, and the start of each row in it."""
    if "view" in str(array.type):
        raise SystemExit("--plain has views: write it with arrow_cast(column, 'Utf8')")
    _, offsets, text = array.buffers()
    number = numpy.int64 if str(array.type).startswith("large") else numpy.int32
    starts = numpy.frombuffer(offsets, dtype=number)[array.offset : array.offset + len(array) + 1]
    return numpy.frombuffer(text, dtype=numpy.uint8)[starts[0] : starts[-1]], starts - starts[0]


def rows_of(table):
    return [parts_of(chunk) for chunk in table.column(0).chunks]


def check(module, gsst, plain, column):
    """Compares all rows and returns the bytes of text."""
    expected = rows_of(pyarrow.parquet.read_table(plain, columns=[column]))
    text = numpy.concatenate([text for text, _ in expected])
    lengths = numpy.concatenate([numpy.diff(starts) for _, starts in expected])
    text_at, row_at = 0, 0
    for array in module.device_arrays(gsst, column):
        got, offsets = cupy.from_dlpack(array.text), cupy.from_dlpack(array.offsets)
        same_text = numpy.array_equal(got.get(), text[text_at : text_at + len(got)])
        same_rows = numpy.array_equal(numpy.diff(offsets.get()), lengths[row_at : row_at + len(array)])
        if not (same_text and same_rows):
            raise SystemExit(f"other rows than pyarrow's at row {row_at}")
        text_at, row_at = text_at + len(got), row_at + len(array)
    if (text_at, row_at) != (len(text), len(lengths)):
        raise SystemExit(f"{row_at} rows of {text_at} bytes instead of {len(lengths)} of {len(text)}")
    return text_at


def from_codes(module, gsst, column, ahead, keeps):
    kept = []
    for array in module.device_arrays(gsst, column, ahead=ahead):
        parts = cupy.from_dlpack(array.text), cupy.from_dlpack(array.offsets)
        if keeps:
            kept.append(parts)
    cupy.cuda.runtime.deviceSynchronize()


def from_pyarrow(plain, column, keeps):
    kept = []
    with pyarrow.parquet.ParquetFile(plain, memory_map=True) as file:
        for row_group in range(file.num_row_groups):
            for text, starts in rows_of(file.read_row_group(row_group, columns=[column], use_threads=True)):
                parts = cupy.asarray(text), cupy.asarray(starts)
                if keeps:
                    kept.append(parts)
    cupy.cuda.runtime.deviceSynchronize()


def whole_file(plain, column):
    """All row groups at once, so that pyarrow decodes on all cores."""
    parts = [(cupy.asarray(text), cupy.asarray(starts))
             for text, starts in rows_of(pyarrow.parquet.read_table(plain, columns=[column], memory_map=True))]
    cupy.cuda.runtime.deviceSynchronize()
    return len(parts)


def measure(name, text_len_bytes, num_runs, run):
    seconds = []
    for _ in range(num_runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    rates = [text_len_bytes / one / 1e9 for one in (min(seconds), statistics.median(seconds))]
    print("| {} | {:.1f} | {:.1f} | {:.1f} |".format(name, *rates, min(seconds) * 1e3), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("gsst", help="a Parquet file with a GSST column")
    parser.add_argument("column")
    parser.add_argument("--plain", required=True, help="a Parquet file with the same rows as text")
    parser.add_argument("--ahead", default="1,4,8,12", help="row groups in work at the same time")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--keep", action="store_true", help="keep all text on the device until the end of a run")
    parser.add_argument("--module", default="datafusion_tadoc", help="module with device_arrays")
    arguments = parser.parse_args()
    module = importlib.import_module(arguments.module)
    gsst, plain, column = arguments.gsst, arguments.plain, arguments.column
    text_len_bytes = check(module, gsst, plain, column)
    stored = os.path.getsize(gsst)
    arrays = module.device_arrays(gsst, column)
    print(f"{text_len_bytes / 1e6:.0f} MB of text, {stored / 1e6:.0f} MB stored, ratio {text_len_bytes / stored:.2f}, "
          f"{len(arrays)} row groups, {os.cpu_count()} cores; rows equal pyarrow's")
    print("| route | GB/s, fastest | GB/s, median | ms, fastest |\n| --- | ---: | ---: | ---: |")
    for ahead in map(int, arguments.ahead.split(",")):
        measure(f"codes, {ahead} ahead", text_len_bytes, arguments.runs,
                lambda: from_codes(module, gsst, column, ahead, arguments.keep))
    measure("pyarrow, row group by row group", text_len_bytes, 3, lambda: from_pyarrow(plain, column, arguments.keep))
    measure("pyarrow, whole file", text_len_bytes, 3, lambda: whole_file(plain, column))


if __name__ == "__main__":
    main()
