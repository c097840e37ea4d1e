#!/usr/bin/env python3
"""Measures what a user of the wheel waits for: install, import, and rows that go to polars.

Claims it supports: "`pip install` to the first answer takes at most 20 s", "the wheel has at most 60 MB", "its import takes
at most 150 ms", "ten million rows reach polars in 1.25 times the time that `tadoc sql` takes for them".

    .ci/python --build
    python3 benches/peers/wheel.py --wheel target/wheels/datafusion_tadoc-*.whl FOLDER

Method. The wheel is installed into a new virtual environment, and polars behind it, from a registry, off the clock. Times of
imports are those of whole processes less those of an interpreter that imports nothing, the shortest of --runs. The
documents of the folder become a corpus. Each way to its `term_vector` opens it anew, in a process of its own; the shortest
of --runs counts. `tadoc sql` reads all rows and prints the first ones.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

ROWS = "SELECT * FROM term_vector('texts.tadoc')"
POLARS = f"""
import datafusion_tadoc as tadoc
print(len(tadoc.connect().sql({ROWS!r}).pl()))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--wheel", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    wheel, folder = arguments.wheel.resolve(), arguments.folder.resolve()
    print(f"| what | measured |\n| --- | ---: |\n| wheel, MB | {wheel.stat().st_size / 1e6:.1f} |")
    with tempfile.TemporaryDirectory() as temp:
        bench = Bench(pathlib.Path(temp), arguments.runs)
        bench.install(wheel)
        bench.imports()
        bench.rows(folder)


class Bench:
    def __init__(self, temp, runs):
        self.temp, self.runs, self.bin = temp, runs, temp / "venv" / "bin"

    def run(self, *command):
        """Runs a command and returns its output and the seconds that it takes."""
        start = time.perf_counter()
        done = subprocess.run(list(map(str, command)), cwd=self.temp, check=True, capture_output=True, text=True)
        return done.stdout, time.perf_counter() - start

    def shortest(self, *command):
        done = [self.run(*command) for _ in range(self.runs)]
        return done[0][0], min(seconds for _, seconds in done)

    def install(self, wheel):
        (self.temp / "a.txt").write_text("to be or not to be\n")
        _, of_venv = self.run(sys.executable, "-m", "venv", "venv")
        _, of_pip = self.run(self.bin / "pip", "install", "--quiet", "--no-index", wheel)
        _, of_ingest = self.run(self.bin / "tadoc", "ingest", "a.txt", "-o", "a.tadoc")
        _, of_answer = self.run(self.bin / "tadoc", "sql", "-c", "SELECT * FROM word_count('a.tadoc')")
        seconds = of_venv + of_pip + of_ingest + of_answer
        print(f"| new environment, `pip install`, ingest and first answer, s | {seconds:.1f} |")

    def imports(self):
        _, bare = self.shortest(self.bin / "python", "-c", "pass")
        _, whole = self.shortest(self.bin / "python", "-c", "import datafusion_tadoc")
        print(f"| import, ms | {(whole - bare) * 1e3:.0f} |")

    def rows(self, folder):
        self.run(self.bin / "pip", "install", "--quiet", "polars")
        self.run(self.bin / "tadoc", "ingest", folder, "-o", "texts.tadoc")
        num_rows, of_polars = self.shortest(self.bin / "python", "-c", POLARS)
        _, of_command = self.shortest(self.bin / "tadoc", "sql", "-c", ROWS)
        num_rows = int(num_rows)
        print(f"| rows of `term_vector` | {num_rows:,} |")
        print(f"| rows to polars / `tadoc sql` | {of_polars / of_command:.2f} |")


if __name__ == "__main__":
    main()
