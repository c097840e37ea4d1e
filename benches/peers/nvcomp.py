"""Measures nvCOMP's codecs beside GSST on the same bytes of a column, in device memory. Results are in
benches/results/2026-11-21-h200.md.

    cargo build --bench gsst_layouts
    pip install nvidia-libnvcomp-cu13==6.0.0.12 cupy-cuda13x
    python3 benches/peers/nvcomp.py --bench target/debug/deps/gsst_layouts-… l_comment.txt

Runs the bench on the column first, then every codec with the batched calls of libnvcomp. Chunks have 64 and
256 KiB and are compressed by nvCOMP. The text is compared over two fill bytes. Times are of device events, the
median of 15 runs. The bytes are those of the rows, without line feeds, as in GSST. GSST's blocks contain the
borders of rows, but nvCOMP's chunks do not. Stored bytes are those of the compressed chunks, and 8 more per chunk
for its start.
"""

import argparse
import ctypes
import importlib.util
import os
import pathlib
import statistics
import subprocess

import cupy
import numpy

TEXT_BYTES = 1 << 30
CHUNK_KIB = (64, 256)
INDEX_BYTES = 8
ALIGNMENT = 256
POISONS = (0xA5, 0x5A)
NUM_WARM_UPS = 3
NUM_RUNS = 15


class Options(ctypes.Structure):
    """Options of any codec: 64 bytes, which are 0 by default."""

    _fields_ = [("words", ctypes.c_int32 * 16)]


# Names in the library, and words of the options to compress and to decompress, from the headers' defaults.
# Level 4 of Deflate and GDeflate is the first that beats zlib's 6. ANS reads its data type from the bytes.
CODECS = {
    "ANS": ("ANS", (), (0, 0xFF)),
    "Snappy": ("Snappy", (), ()),
    "LZ4": ("LZ4", (), ()),
    "GDeflate, level 4": ("Gdeflate", (4,), ()),
    "Deflate, level 4": ("Deflate", (4,), ()),
    "Zstd": ("Zstd", (), ()),
}


def load_library():
    folder = pathlib.Path(importlib.util.find_spec("nvidia.libnvcomp").origin).parent
    return ctypes.CDLL(str(folder / "lib64" / "libnvcomp.so.6"))


def size(number):
    return ctypes.c_size_t(number)


def address(array):
    return ctypes.c_void_p(array.data.ptr)


def options(words):
    return Options((ctypes.c_int32 * 16)(*words))


class Codec:
    """One codec on one text, whose chunks are compressed on the device."""

    def __init__(self, library, name, chunk_bytes, text):
        self.library, self.text = library, text
        self.prefix, compressing, decompressing = CODECS[name]
        self.compressing, self.decompressing = options(compressing), options(decompressing)
        self.chunk_bytes = chunk_bytes
        self.num_chunks = -(-len(text) // chunk_bytes)
        self.sizes = cupy.full(self.num_chunks, chunk_bytes, cupy.uint64)
        self.sizes[-1] = len(text) - (self.num_chunks - 1) * chunk_bytes
        self.statuses = cupy.zeros(self.num_chunks, cupy.int32)

    def call(self, name, *arguments):
        status = getattr(self.library, f"nvcompBatched{self.prefix}{name}")(*arguments)
        if status:
            raise RuntimeError(f"nvcompBatched{self.prefix}{name} answered {status}")

    def starts(self, array, stride):
        return cupy.uint64(array.data.ptr) + cupy.arange(self.num_chunks, dtype=cupy.uint64) * cupy.uint64(stride)

    def temporary(self, name, words):
        answer = size(0)
        self.call(f"{name}GetTempSize", size(self.num_chunks), size(self.chunk_bytes), words,
                  ctypes.byref(answer), size(len(self.text)), None)
        return cupy.empty(max(answer.value, 1), cupy.uint8)

    def compress(self):
        most = size(0)
        self.call("CompressGetMaxOutputChunkSize", size(self.chunk_bytes), self.compressing, ctypes.byref(most))
        stride = -(-most.value // ALIGNMENT) * ALIGNMENT
        scratch = self.temporary("Compress", self.compressing)
        wide = cupy.empty(self.num_chunks * stride, cupy.uint8)
        self.stored_sizes = cupy.zeros(self.num_chunks, cupy.uint64)
        # Chunks stay in place, and only their written bytes are read.
        self.stored, self.stored_starts = wide, self.starts(wide, stride)
        starts = self.starts(self.text, self.chunk_bytes)
        self.call("CompressAsync", address(starts), address(self.sizes), size(self.chunk_bytes),
                  size(self.num_chunks), address(scratch), size(scratch.size), address(self.stored_starts),
                  address(self.stored_sizes), self.compressing, address(self.statuses), None)
        self.check("compressing")
        self.scratch = self.temporary("Decompress", self.decompressing)

    def ratio(self):
        return len(self.text) / (int(self.stored_sizes.sum()) + INDEX_BYTES * self.num_chunks)

    def decompress_into(self, out, starts, got_sizes):
        self.call("DecompressAsync", address(self.stored_starts), address(self.stored_sizes), address(self.sizes),
                  address(got_sizes), size(self.num_chunks), address(self.scratch), size(self.scratch.size),
                  address(starts), self.decompressing, address(self.statuses), None)

    def check(self, what):
        cupy.cuda.Device().synchronize()
        if int(self.statuses.max()) or int(self.statuses.min()):
            raise RuntimeError(f"{self.prefix}: {what} a chunk failed")

    def rates(self):
        """Compares the text twice and returns the GB/s of text of each run."""
        out, got_sizes = cupy.empty_like(self.text), cupy.zeros_like(self.sizes)
        starts = self.starts(out, self.chunk_bytes)
        for poison in POISONS:
            out.fill(poison)
            self.decompress_into(out, starts, got_sizes)
            self.check("decompressing")
            if not bool((out == self.text).all()):
                raise RuntimeError(f"{self.prefix}: other text came back")
        for _ in range(NUM_WARM_UPS):
            self.decompress_into(out, starts, got_sizes)
        rates = []
        for _ in range(NUM_RUNS):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            self.decompress_into(out, starts, got_sizes)
            end.record()
            end.synchronize()
            rates.append(len(self.text) / cupy.cuda.get_elapsed_time(begin, end) / 1e6)
        return rates


def text_of(column):
    rows = column.read_bytes().replace(b"\n", b"")
    return cupy.asarray(numpy.frombuffer(rows * -(-TEXT_BYTES // len(rows)), dtype=numpy.uint8))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bench", help="the binary of benches/gsst_layouts.rs, run on each column first")
    parser.add_argument("columns", nargs="+", type=pathlib.Path, help="files with a row in each line")
    arguments = parser.parse_args()
    library = load_library()
    for column in arguments.columns:
        print(f"\n{column.name}", flush=True)
        if arguments.bench:
            environment = {**os.environ, "TADOC_COLUMN": str(column)}
            subprocess.run([arguments.bench], env=environment, check=True)
        text = text_of(column)
        print(f"| nvCOMP, {len(text)} bytes | chunks | GB/s, median of {NUM_RUNS} | lowest | highest | ratio |")
        for name in CODECS:
            for kib in CHUNK_KIB:
                codec = Codec(library, name, kib << 10, text)
                codec.compress()
                rates = codec.rates()
                middle, low, high = statistics.median(rates), min(rates), max(rates)
                print(f"| {name} | {kib} KiB | {middle:.1f} | {low:.1f} | {high:.1f} | {codec.ratio():.3f} |",
                      flush=True)


if __name__ == "__main__":
    main()
