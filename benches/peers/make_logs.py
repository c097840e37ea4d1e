#!/usr/bin/env python3
"""Makes a folder of generated boot logs, the same on every machine: text that repeats itself, as logs do.

Claim it supports: the rows "logs" of `workers.py` in benches/results.

There are 3,000 kinds of lines, of 4 to 12 words out of 4,000. Each of 400 machines has 200 to 600 of them, always in the
same order. A document is a boot: the lines with rising time stamps, every fiftieth left out. All cores write.

    python3 benches/peers/make_logs.py --out /tmp/tadoc-logs [--target-bytes 400000000]
"""

import argparse
import multiprocessing
import os
import random
import shutil

NUM_MACHINES = 400
NUM_KINDS = 3000
NUM_WORDS = 4000
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def kinds_of_lines():
    """Returns the texts of all kinds of lines."""
    rng = random.Random(1)
    words = ["".join(rng.choices(LETTERS, k=rng.randint(3, 10))) for _ in range(NUM_WORDS)]
    return [" ".join(rng.choices(words, k=rng.randint(4, 12))) for _ in range(NUM_KINDS)]


def write_machine(out, machine, target_bytes):
    """Writes the boots of a machine until they have `target_bytes`, and returns their number and their bytes."""
    rng = random.Random(machine + 2)
    kinds = kinds_of_lines()
    lines = [kinds[rng.randrange(NUM_KINDS)] for _ in range(rng.randint(200, 600))]
    folder = os.path.join(out, f"machine{machine:03}")
    os.makedirs(folder)
    num_boots = num_bytes = 0
    while num_bytes < target_bytes:
        micros, boot = 0, []
        for line in lines:
            micros += rng.randrange(50_000)
            if rng.randrange(50):
                boot.append(f"[{micros // 1_000_000:5}.{micros % 1_000_000:06}] {line}\n")
        text = "".join(boot)
        with open(os.path.join(folder, f"boot{num_boots:04}.log"), "w") as file:
            file.write(text)
        num_boots, num_bytes = num_boots + 1, num_bytes + len(text)
    return num_boots, num_bytes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="/tmp/tadoc-logs")
    parser.add_argument("--target-bytes", type=int, default=400_000_000)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.out, ignore_errors=True)
    of_each = arguments.target_bytes // NUM_MACHINES
    with multiprocessing.Pool() as pool:
        written = pool.starmap(write_machine, [(arguments.out, machine, of_each) for machine in range(NUM_MACHINES)])
    num_boots, num_bytes = map(sum, zip(*written))
    print(f"{num_boots:,} documents, {num_bytes:,} bytes in {arguments.out}")


if __name__ == "__main__":
    main()
