#!/usr/bin/env python3
"""Prints the bytes that the kernels of a run read and write, measured by Nsight Compute and summed up by
kernel, beside the rate at which the device copies.

    export REQUIRE_GPU=1 TADOC_GPU_MIB=100 TADOC_GPU_KINDS=prose TADOC_GPU_RUNS=1
    ncu --csv --print-units base --clock-control none --cache-control none --log-file ncu.csv \\
        --metrics dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum \\
        target/release/deps/gpu_corpus-… > bench.txt
    python3 kernels/profile.py ncu.csv bench.txt

The second file is the output of the bench and contains the rate of copies. The rate of a kernel that runs for
less than some ten microseconds means little. Nsight Compute does not count bytes from the L2 cache.
"""

import csv
import re
import sys
from collections import defaultdict

READ, WRITTEN, TIME = (
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "gpu__time_duration.sum",
)


def read_kernels(lines):
    """Returns launches and sums of the metrics for each kernel."""
    kernels = defaultdict(lambda: {"launches": set(), READ: 0.0, WRITTEN: 0.0, TIME: 0.0})
    # Messages of the profiler come before the table.
    rows = list(lines)
    start = next((at for at, line in enumerate(rows) if line.startswith('"ID"')), None)
    if start is None:
        sys.exit("the first file has no table of ncu --csv: " + "".join(rows[-3:]))
    for row in csv.DictReader(rows[start:]):
        if row["Metric Name"] in (READ, WRITTEN, TIME):
            kernel = kernels[row["Kernel Name"].split("(")[0]]
            kernel["launches"].add(row["ID"])
            kernel[row["Metric Name"]] += float(row["Metric Value"].replace(",", ""))
    return kernels


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        kernels = read_kernels(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        copied = re.search(r"^copies in device memory: ([0-9.]+) GB/s", file.read(), re.MULTILINE)
    if not copied:
        sys.exit("the second file has no rate of copies: is it what the bench printed?")
    copied_gb_per_s = float(copied[1])
    print(f"Copies: {copied_gb_per_s:.0f} GB/s, read and written.\n")
    print("| kernel | launches | ms | MB read | MB written | GB/s | of copies |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, kernel in sorted(kernels.items(), key=lambda item: -item[1][TIME]):
        # Bytes per nanosecond equal GB/s.
        gb_per_s = (kernel[READ] + kernel[WRITTEN]) / kernel[TIME] if kernel[TIME] else 0.0
        print(
            f"| `{name}` | {len(kernel['launches'])} | {kernel[TIME] / 1e6:.3f} | {kernel[READ] / 1e6:.1f} "
            f"| {kernel[WRITTEN] / 1e6:.1f} | {gb_per_s:.0f} | {100 * gb_per_s / copied_gb_per_s:.0f} % |"
        )


if __name__ == "__main__":
    main()
