"""Measures string codecs of GPUs on the same bytes of a column, in device memory, on one card and in one run:
GSST, nvCOMP, and Vortex's kernels for FSST and OnPair. With --parquet also cuDF's reader, from a file to strings
on the device. Results are in benches/results/2026-12-01-h200.md.

    cargo build --bench gsst_layouts --bench gsst_match --bench gsst_decode
    cargo build --release --manifest-path benches/peers/vortex_column/Cargo.toml
    pip install nvidia-libnvcomp-cu13==6.0.0.12 cupy-cuda13x nvidia-ml-py
    python3 benches/peers/gpu_codecs.py --benches target/debug/deps --vortex KERNELS \\
        --encoder benches/peers/vortex_column/target/release/vortex_column l_comment.txt
    pip install pylibcudf-cu13==26.10.2 pyarrow
    python3 benches/peers/gpu_codecs.py --parquet --only parquet l_comment.txt

KERNELS is the folder vortex-cuda/kernels/src of a checkout of Vortex: fsst.cu, config.cuh and
onpair_shmem_4tpt_split8read.cu, which nvcc compiles with the options of its build. pylibcudf needs another nvCOMP
than the first package, so it has an environment of its own. KVIKIO_NTHREADS is how many threads of cuDF read.

The bytes are those of the rows, without line feeds. A column is repeated to 1 GiB. Each output is compared over
two fill bytes before it is timed. Times are of device events (cuDF: of the clock), the median of 15 runs. Then a
codec runs for --seconds, between two readings of the card's energy counter; J/TB are joules for 10^12 bytes of
text. Temporary memory is what nvCOMP asks for, for the whole column at once.

Parts of a ratio: GSST, the whole blocks, with borders of rows and tables. nvCOMP, the compressed chunks and 8
bytes for the start of each, without borders of rows. Vortex, its codes (those of OnPair packed, though its kernel
reads 16 bits) and table, and in brackets also the lengths of rows and of their codes in as few bits as the
longest needs. Its kernels read places that are made from these before, at no time here: 8 and 4 bytes a row for
FSST, 8 bytes for 128 codes for OnPair.
"""

import argparse
import ctypes
import importlib.util
import math
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import cupy
import numpy
import pynvml

TEXT_BYTES = 1 << 30
CHUNK_KIB = (64, 256)
INDEX_BYTES = 8
ALIGNMENT = 256
POISONS = (0xA5, 0x5A)
NUM_WARM_UPS = 3
NUM_RUNS = 15
RUNS_AT_ONCE = 8
HEAD = (f"| codec | form | GB/s, median of {NUM_RUNS} | lowest | highest | ratio | temporary MiB, compress "
        "| decompress | J/TB | W |")
# Benches with GSST, and their variables.
BENCHES = (
    ("gsst_layouts", {"TADOC_ONLY": "gsst_decode"}),
    ("gsst_match", {"TADOC_ONLY": "8 bits, 4 MiB", "TADOC_PREDICATE": "%final dep%"}),
    ("gsst_match", {"TADOC_ONLY": "8 bits, 4 MiB", "TADOC_PREDICATE": "%ly %"}),
    ("gsst_match", {"TADOC_ONLY": "12 bits, 4 MiB", "TADOC_PREDICATE": "%final dep%"}),
    ("gsst_decode", {"TADOC_ONLY": "8 bits, 4 MiB"}),
)


class Meter:
    """Reads the energy that the card has taken."""

    def __init__(self):
        pynvml.nvmlInit()
        self.card = pynvml.nvmlDeviceGetHandleByIndex(0)

    def joules(self):
        """Returns joules since the driver was loaded, or NaN for a card that does not count them."""
        try:
            return pynvml.nvmlDeviceGetTotalEnergyConsumption(self.card) / 1e3
        except pynvml.NVMLError_NotSupported:
            return math.nan

    def idle_watts(self, seconds):
        cupy.cuda.Device().synchronize()
        before, begin = self.joules(), time.monotonic()
        time.sleep(seconds)
        return (self.joules() - before) / (time.monotonic() - begin)

    def of(self, run, text_bytes, seconds):
        """Repeats a run for seconds. Returns joules for 10^12 bytes of text, and watts."""
        cupy.cuda.Device().synchronize()
        before, begin, num_runs = self.joules(), time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            for _ in range(RUNS_AT_ONCE):
                run()
            cupy.cuda.Device().synchronize()
            num_runs += RUNS_AT_ONCE
        joules, elapsed = self.joules() - before, time.monotonic() - begin
        return joules * 1e12 / (num_runs * text_bytes), joules / elapsed


def event_rates(run, text_bytes):
    """Returns the GB/s of text of each run, by the device's clock."""
    for _ in range(NUM_WARM_UPS):
        run()
    rates = []
    for _ in range(NUM_RUNS):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        run()
        end.record()
        end.synchronize()
        rates.append(text_bytes / cupy.cuda.get_elapsed_time(begin, end) / 1e6)
    return rates


def check(run, out, text):
    """Compares the output of a run with the text, over two fill bytes."""
    for poison in POISONS:
        out.fill(poison)
        run()
        if not bool((out[:len(text)] == text).all()):
            raise RuntimeError("other text came back")


def print_line(name, form, rates, ratio, temporary, energy):
    middle, low, high = statistics.median(rates), min(rates), max(rates)
    mib = " | ".join("" if count is None else f"{count / 2**20:.1f}" for count in temporary)
    print(f"| {name} | {form} | {middle:.1f} | {low:.1f} | {high:.1f} | {ratio} | {mib} "
          f"| {energy[0]:.0f} | {energy[1]:.0f} |", flush=True)


def run_benches(folder, column, meter, seconds):
    """Runs the benches of GSST, and prints the energy between the two lines of each repetition."""
    for name, variables in BENCHES:
        binary = max((at for at in folder.glob(f"{name}-*") if not at.suffix), key=lambda at: at.stat().st_mtime)
        environment = {**os.environ, **variables, "TADOC_COLUMN": str(column), "TADOC_SECONDS": str(seconds),
                       "REQUIRE_GPU": "1"}
        child = subprocess.Popen([binary], env=environment, stdout=subprocess.PIPE, text=True)
        for line in child.stdout:
            if line.startswith("repeat begins: "):
                what, before, begin = line.removeprefix("repeat begins: ").strip(), meter.joules(), time.monotonic()
            elif line.startswith("repeat ends: "):
                joules, elapsed = meter.joules() - before, time.monotonic() - begin
                num_runs, text_bytes = (int(word) for word in line.split() if word.isdigit())
                per_tb = joules * 1e12 / (num_runs * text_bytes)
                rate = num_runs * text_bytes / elapsed / 1e9
                print(f"{what}: {rate:.0f} GB/s in a row, {per_tb:.0f} J/TB, {joules / elapsed:.0f} W", flush=True)
            else:
                print(line, end="", flush=True)
        if child.wait():
            raise RuntimeError(f"{name} ended with {child.returncode}")


class Options(ctypes.Structure):
    """Options of any codec: 64 bytes, which are 0 by default."""

    _fields_ = [("words", ctypes.c_int32 * 16)]


# Names in the library, and words of the options to compress and to decompress, from the headers' defaults.
# Level 4 of Deflate and GDeflate is the first that beats zlib's 6. ANS reads its data type from the bytes. Text
# is of type UCHAR (1) for Bitcomp and Cascaded. Cascaded may use all of its encodings (7), up to its last level
# (7).
CODECS = {
    "ANS": ("ANS", (), (0, 0xFF)),
    "Bitcomp": ("Bitcomp", (0, 1), ()),
    "Cascaded": ("Cascaded", (1, 1, 1, 0, 0, 0, 7, 0, 7), (0, 0, 0xFF)),
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
    """One codec of nvCOMP on one text, whose chunks are compressed on the device."""

    def __init__(self, library, name, chunk_bytes, text):
        self.library, self.text = library, text
        self.prefix, compressing, decompressing = CODECS[name]
        self.compressing, self.decompressing = options(compressing), options(decompressing)
        self.chunk_bytes = chunk_bytes
        self.num_chunks = -(-len(text) // chunk_bytes)
        self.sizes = cupy.full(self.num_chunks, chunk_bytes, cupy.uint64)
        self.sizes[-1] = len(text) - (self.num_chunks - 1) * chunk_bytes
        self.got_sizes = cupy.zeros_like(self.sizes)
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
        return cupy.empty(max(answer.value, 1), cupy.uint8), answer.value

    def compress(self):
        most = size(0)
        self.call("CompressGetMaxOutputChunkSize", size(self.chunk_bytes), self.compressing, ctypes.byref(most))
        stride = -(-most.value // ALIGNMENT) * ALIGNMENT
        scratch, compress_bytes = self.temporary("Compress", self.compressing)
        wide = cupy.empty(self.num_chunks * stride, cupy.uint8)
        self.stored_sizes = cupy.zeros(self.num_chunks, cupy.uint64)
        # Chunks stay in place, and only their written bytes are read.
        self.stored, self.stored_starts = wide, self.starts(wide, stride)
        starts = self.starts(self.text, self.chunk_bytes)
        self.call("CompressAsync", address(starts), address(self.sizes), size(self.chunk_bytes),
                  size(self.num_chunks), address(scratch), size(scratch.size), address(self.stored_starts),
                  address(self.stored_sizes), self.compressing, address(self.statuses), None)
        self.check_statuses("compressing")
        self.scratch, decompress_bytes = self.temporary("Decompress", self.decompressing)
        self.temporary_bytes = (compress_bytes, decompress_bytes)

    def ratio(self):
        return len(self.text) / (int(self.stored_sizes.sum()) + INDEX_BYTES * self.num_chunks)

    def decompress_into(self, starts):
        self.call("DecompressAsync", address(self.stored_starts), address(self.stored_sizes), address(self.sizes),
                  address(self.got_sizes), size(self.num_chunks), address(self.scratch), size(self.scratch.size),
                  address(starts), self.decompressing, address(self.statuses), None)

    def check_statuses(self, what):
        cupy.cuda.Device().synchronize()
        if int(self.statuses.max()) or int(self.statuses.min()):
            raise RuntimeError(f"{self.prefix}: {what} a chunk failed")


def measure_nvcomp(text, meter, seconds):
    library = load_library()
    for name in CODECS:
        for kib in CHUNK_KIB:
            try:
                measure_codec(Codec(library, name, kib << 10, text), name, meter, seconds)
            except RuntimeError as error:
                print(f"| {name} | {kib} KiB | {error} |", flush=True)


def measure_codec(codec, name, meter, seconds):
    codec.compress()
    text = codec.text
    out = cupy.empty_like(text)
    starts = codec.starts(out, codec.chunk_bytes)

    def run():
        codec.decompress_into(starts)

    check(run, out, text)
    codec.check_statuses("decompressing")
    rates = event_rates(run, len(text))
    energy = meter.of(run, len(text), seconds)
    form = f"{codec.chunk_bytes >> 10} KiB"
    print_line(name, form, rates, f"{codec.ratio():.3f}", codec.temporary_bytes, energy)


# Launches of Vortex: threads of a block, rows of a block of FSST, codes of a warp and of a block of OnPair.
FSST_THREADS, FSST_ROWS = 64, 64 * 32
ONPAIR_THREADS, ONPAIR_WARP_CODES = 512, 128
ONPAIR_BLOCK_CODES = ONPAIR_THREADS // 32 * ONPAIR_WARP_CODES
# Longest token of OnPair, and the part that its kernel keeps apart.
TOKEN_BYTES, TOKEN_HEAD_BYTES = 16, 8


class Vortex:
    """A column that vortex_column encoded, and the kernels of a checkout of Vortex."""

    def __init__(self, kernels, encoded, text):
        self.kernels, self.encoded, self.text = kernels, encoded, text
        self.rows = self.read("rows", numpy.uint32)
        self.copies = len(text) // int(self.rows.sum(dtype=numpy.uint64))

    def read(self, name, kind):
        return numpy.fromfile(self.encoded / name, kind)

    def repeated(self, values):
        return cupy.tile(cupy.asarray(values), self.copies)

    def repeated_starts(self, lengths, kind):
        starts = cupy.zeros(self.copies * len(lengths) + 1, kind)
        starts[1:] = cupy.cumsum(self.repeated(lengths), dtype=kind)
        return starts

    def function(self, name, kernel):
        major, minor = cupy.cuda.Device().compute_capability[:-1], cupy.cuda.Device().compute_capability[-1]
        with tempfile.TemporaryDirectory() as folder:
            at = f"{folder}/{name}.cubin"
            subprocess.run(["nvcc", "-O3", "-std=c++20", f"-arch=sm_{major}{minor}", "--restrict", "-cubin",
                            "-I", self.kernels, "-o", at, self.kernels / f"{name}.cu"], check=True)
            self.module = cupy.RawModule(path=at)
            return self.module.get_function(kernel)

    def ratios(self, code_bits, table_bytes, num_codes, code_lengths):
        """Returns the ratio without and with lengths of rows, the latter in brackets."""
        text_bytes = len(self.text) // self.copies
        bits_of_rows = int(self.rows.max()).bit_length() + int(code_lengths.max()).bit_length()
        stored = num_codes * code_bits / 8 + table_bytes
        return f"{text_bytes / stored:.3f} ({text_bytes / (stored + len(self.rows) * bits_of_rows / 8):.3f})"

    def fsst(self):
        codes, starts = self.read("fsst.codes", numpy.uint8), self.read("fsst.starts", numpy.uint32)
        symbols, lengths = self.read("fsst.symbols", numpy.uint64), self.read("fsst.lengths", numpy.uint8)
        function, code_lengths = self.function("fsst", "fsst_u32"), numpy.diff(starts)
        num_rows = self.copies * len(self.rows)
        out = cupy.empty(len(self.text), cupy.uint8)
        arguments = (self.repeated(codes), self.repeated_starts(code_lengths, numpy.uint32),
                     cupy.asarray(symbols), cupy.asarray(lengths), self.repeated_starts(self.rows, numpy.uint64),
                     cupy.full(-(-num_rows // 8), 0xFF, cupy.uint8), out, numpy.uint64(num_rows))
        grid = (-(-num_rows // FSST_ROWS),)
        ratio = self.ratios(8, symbols.nbytes + lengths.nbytes, len(codes), code_lengths)
        return lambda: function(grid, (FSST_THREADS,), arguments), out, ratio

    def onpair(self, bits):
        codes, starts = (self.read(f"onpair{bits}.{name}", kind)
                         for name, kind in (("codes", numpy.uint16), ("starts", numpy.uint32)))
        tokens, ends = (self.read(f"onpair{bits}.{name}", kind)
                        for name, kind in (("tokens", numpy.uint8), ("ends", numpy.uint32)))
        # The crate pads the bytes.
        tokens, lengths = tokens[:ends[-1]], numpy.diff(ends).astype(numpy.uint8)
        padded = numpy.zeros((len(lengths), TOKEN_BYTES), numpy.uint8)
        places = numpy.arange(len(tokens)) - numpy.repeat(ends[:-1], lengths)
        padded[numpy.repeat(numpy.arange(len(lengths)), lengths), places] = tokens
        all_codes = self.repeated(codes)
        num_warps = -(-len(all_codes) // ONPAIR_WARP_CODES)
        lengths_of_codes = cupy.zeros(num_warps * ONPAIR_WARP_CODES, cupy.uint8)
        lengths_of_codes[:len(all_codes)] = cupy.asarray(lengths)[all_codes]
        warp_starts = cupy.zeros(num_warps + 1, cupy.uint64)
        sums = lengths_of_codes.reshape(-1, ONPAIR_WARP_CODES).sum(axis=1, dtype=cupy.uint64)
        warp_starts[1:] = cupy.cumsum(sums)
        del lengths_of_codes, sums
        function = self.function("onpair_shmem_4tpt_split8read", "onpair_shmem_4tpt_split8read")
        out = cupy.empty(len(self.text), cupy.uint8)
        heads = numpy.ascontiguousarray(padded[:, :TOKEN_HEAD_BYTES])
        arguments = (all_codes, warp_starts, cupy.asarray(heads), cupy.asarray(padded), cupy.asarray(lengths), out,
                     numpy.uint64(len(all_codes)))
        grid = (-(-len(all_codes) // ONPAIR_BLOCK_CODES),)
        code_bits = max(len(lengths) - 1, 1).bit_length()
        ratio = self.ratios(code_bits, tokens.nbytes + lengths.nbytes, len(codes), numpy.diff(starts))
        return lambda: function(grid, (ONPAIR_THREADS,), arguments), out, ratio


def measure_vortex(kernels, encoder, column, text, meter, seconds):
    with tempfile.TemporaryDirectory() as folder:
        encoded = pathlib.Path(folder)
        subprocess.run([encoder.resolve(), column, encoded], check=True)
        vortex = Vortex(kernels, encoded, text)
        cases = (("FSST", "8 bits", vortex.fsst), ("OnPair", "12 bits", lambda: vortex.onpair(12)),
                 ("OnPair", "16 bits", lambda: vortex.onpair(16)))
        for name, form, prepare in cases:
            run, out, ratio = prepare()
            check(run, out, text)
            rates = event_rates(run, len(text))
            print_line(f"Vortex {name}", form, rates, ratio, (None, None), meter.of(run, len(text), seconds))


def measure_parquet(column, meter, seconds):
    """Measures cuDF's reader on files in memory: from the file to a column of strings on the device, whose
    memory comes from a pool."""
    import pyarrow
    import pyarrow.parquet
    import pylibcudf
    import rmm

    rmm.reinitialize(pool_allocator=True)
    rows = column.read_bytes().removesuffix(b"\n").split(b"\n")
    text_bytes = sum(map(len, rows))
    copies = -(-TEXT_BYTES // text_bytes)
    one = pyarrow.array(rows, pyarrow.binary()).cast(pyarrow.string())
    table = pyarrow.table({"text": pyarrow.chunked_array([one] * copies)})
    text_bytes *= copies
    for compression in ("none", "snappy", "zstd"):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            at = f"{folder}/column.parquet"
            pyarrow.parquet.write_table(table, at, compression=compression)

            def read():
                source = pylibcudf.io.SourceInfo([at])
                options = pylibcudf.io.parquet.ParquetReaderOptions.builder(source).build()
                return pylibcudf.io.parquet.read_parquet(options).tbl

            if not read().to_arrow().column(0).cast(pyarrow.string()).equals(table.column(0)):
                raise RuntimeError("other text came back")
            rates = []
            for _ in range(NUM_WARM_UPS + NUM_RUNS):
                begin = time.perf_counter()
                read()
                cupy.cuda.Device().synchronize()
                rates.append(text_bytes / (time.perf_counter() - begin) / 1e9)
            energy = meter.of(read, text_bytes, seconds)
            ratio = text_bytes / os.path.getsize(at)
            print_line("cuDF, Parquet", compression, rates[NUM_WARM_UPS:], f"{ratio:.3f}", (None, None), energy)


def text_of(column):
    rows = column.read_bytes().replace(b"\n", b"")
    return cupy.asarray(numpy.frombuffer(rows * -(-TEXT_BYTES // len(rows)), dtype=numpy.uint8))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--benches", type=pathlib.Path, help="the folder with the benches of GSST")
    parser.add_argument("--vortex", type=pathlib.Path, help="the folder with the kernels of Vortex")
    parser.add_argument("--encoder", type=pathlib.Path, help="the binary of benches/peers/vortex_column")
    parser.add_argument("--parquet", action="store_true", help="cuDF's reader too")
    parser.add_argument("--only", choices=("gsst", "nvcomp", "vortex", "parquet"), help="one of the parts")
    parser.add_argument("--seconds", type=int, default=3, help="seconds of each measurement of energy")
    parser.add_argument("columns", nargs="+", type=pathlib.Path, help="files with a row in each line")
    arguments = parser.parse_args()
    meter = Meter()
    print(f"{pynvml.nvmlDeviceGetName(meter.card)}, idle {meter.idle_watts(arguments.seconds):.0f} W", flush=True)

    def is_asked(part):
        return arguments.only in (None, part)

    for column in arguments.columns:
        print(f"\n{column.name}", flush=True)
        if arguments.benches and is_asked("gsst"):
            run_benches(arguments.benches, column, meter, arguments.seconds)
        print(HEAD)
        text = text_of(column)
        if arguments.vortex and arguments.encoder and is_asked("vortex"):
            measure_vortex(arguments.vortex, arguments.encoder, column, text, meter, arguments.seconds)
        if is_asked("nvcomp"):
            measure_nvcomp(text, meter, arguments.seconds)
        del text
        if arguments.parquet and is_asked("parquet"):
            measure_parquet(column, meter, arguments.seconds)


if __name__ == "__main__":
    main()
