#!/usr/bin/env python3
"""Draws the size from which a device pays for tasks over corpora: all cores' time over the device's, by size.

Claim it supports: "tens of times faster where it pays, and where that is".

    export REQUIRE_GPU=1 TADOC_GPU_MIB=10,100,1000
    for kind in log versioned prose; do
        TADOC_GPU_KINDS=$kind cargo bench --bench gpu_corpus > $kind.txt
    done
    python3 benches/peers/crossover.py benches/figures/corpus_crossover.svg log.txt versioned.txt prose.txt

Draws the output of `benches/gpu_corpus.rs`, and prints it as rows of CSV. "Resident" has the corpus and the
derived data of the task in device memory, and leaves the rows there. "With upload" is one call from the host:
it uploads grammars, derives all data, and returns the rows.
"""

import csv
import math
import re
import sys
from collections import defaultdict
from xml.sax.saxutils import escape

COLORS = {"log": "#0072b2", "versioned": "#d55e00", "prose": "#009e73"}
INK, FAINT = "#222222", "#6b6b6b"
COLUMNS, WIDTH, HEIGHT, LEFT, TOP, GAP_X, GAP_Y = 4, 192, 150, 58, 112, 46, 58
CORPUS = re.compile(r"(\w+): \d+ bytes, .* G = (\d+),")
FIELDS = ["task", "kind", "elements", "all_cores_s", "resident_s", "with_upload_s"]


def read_rows(paths):
    """Returns the output of the bench as rows of FIELDS. Passages are not a task over the whole corpus."""
    rows = []
    for path in paths:
        kind, elements = None, 0
        with open(path, encoding="utf-8") as file:
            for line in file:
                if found := CORPUS.match(line):
                    kind, elements = found[1], int(found[2])
                elif line.startswith("| ") and not line.startswith(("| task", "| extract")):
                    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
                    task = re.sub(r", [0-9]+ windows.*", "", cells[0])
                    all_cores, resident, whole = (float(cell) / 1e3 for cell in cells[2:5])
                    rows.append((task, kind, elements, all_cores, resident, whole))
    if not rows:
        sys.exit("no row of a task in " + ", ".join(paths))
    return rows


def crossing(points):
    """Returns the elements at which a line through (elements, ratio) rises above 1 and stays there, interpolated
    between logarithms. Returns None if it never does, or if it is above 1 from the first point on."""
    found = None
    for (x, y), (next_x, next_y) in zip(points, points[1:]):
        if y < 1 <= next_y:
            part = math.log(1 / y) / math.log(next_y / y)
            found = x * (next_x / x) ** part
    return found if points[-1][1] >= 1 else None


def short(number):
    """Returns a number of three digits at most, such as 4.6 M."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= limit:
            return f"{number / limit:.2g}{unit}" if number < 10 * limit else f"{number / limit:.0f}{unit}"
    return f"{number:.0f}"


def powers_around(values):
    """Returns the exponents of two powers of ten with all values between them."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


class Figure:
    """Panels that share their logarithmic axes."""

    def __init__(self, rows):
        ratios = [row[3] / seconds for row in rows for seconds in row[4:]]
        self.x, self.y = powers_around([row[2] for row in rows]), powers_around(ratios + [1.0])
        self.parts = []

    def text(self, x, y, words, style=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>')

    def line(self, points, style):
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="M{path}" fill="none" {style}/>')

    def at(self, corner, elements, ratio):
        part_x = (math.log10(elements) - self.x[0]) / (self.x[1] - self.x[0])
        part_y = (math.log10(ratio) - self.y[0]) / (self.y[1] - self.y[0])
        return corner[0] + WIDTH * part_x, corner[1] + HEIGHT * (1 - part_y)

    def panel(self, corner, task, rows):
        self.text(corner[0], corner[1] - 8, task, 'font-weight="bold"')
        for power in range(self.x[0], self.x[1] + 1):
            ends = [self.at(corner, 10**power, 10**y) for y in self.y]
            self.line(ends, 'stroke="#dddddd"')
            self.text(ends[0][0], ends[0][1] + 16, short(10**power), 'text-anchor="middle" font-size="11"')
        for power in range(self.y[0], self.y[1] + 1):
            ends = [self.at(corner, 10**x, 10**power) for x in self.x]
            self.line(ends, f'stroke="{INK}"' if power == 0 else 'stroke="#dddddd"')
            label = f"{10**power:g}"
            self.text(ends[0][0] - 6, ends[0][1] + 4, label, 'text-anchor="end" font-size="11"')
        for number, kind in enumerate(dict.fromkeys(row[1] for row in rows)):
            own = sorted(row[2:] for row in rows if row[1] == kind)
            color = COLORS.get(kind, INK)
            resident, uploaded = ([(row[0], row[1] / row[at]) for row in own] for at in (2, 3))
            dashes = 'stroke-width="1.5" stroke-dasharray="5 3"'
            self.line([self.at(corner, *point) for point in resident], f'stroke="{color}" {dashes}')
            self.line([self.at(corner, *point) for point in uploaded], f'stroke="{color}" stroke-width="2.5"')
            if crossed := crossing(uploaded):
                x, y = self.at(corner, crossed, 1.0)
                self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#ffffff" stroke="{color}"/>')
                self.text(x + 6, y + 13 * (number + 1), short(crossed), f'font-size="11" fill="{color}"')

    def svg(self, rows):
        tasks = list(dict.fromkeys(row[0] for row in rows))
        for at, task in enumerate(tasks):
            corner = (LEFT + at % COLUMNS * (WIDTH + GAP_X), TOP + at // COLUMNS * (HEIGHT + GAP_Y))
            self.panel(corner, task, [row for row in rows if row[0] == task])
        bottom = TOP + -(-len(tasks) // COLUMNS) * (HEIGHT + GAP_Y)
        self.text(LEFT, 32, "From which size on the device pays", 'font-size="19" font-weight="bold"')
        subtitle = "Time of all cores over the device's, by elements of the grammar; above 1 the device is faster"
        self.text(LEFT, 53, subtitle, f'fill="{FAINT}"')
        for at, kind in enumerate(dict.fromkeys(row[1] for row in rows)):
            color = COLORS.get(kind, INK)
            self.text(LEFT + 110 * at, 78, kind, f'fill="{color}" font-weight="bold"')
        note = "Solid: one call from the host, grammars uploaded, rows back. Dashed: corpus and rows stay in device " \
            "memory. Circles: where solid lines cross 1."
        self.text(LEFT, bottom, note, f'font-size="12" fill="{FAINT}"')
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {bottom + 20}" ' \
            f'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="{INK}">'
        back = f'<rect width="1000" height="{bottom + 20}" fill="#ffffff"/>'
        return "\n".join([head, back, *self.parts, "</svg>"]) + "\n"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    rows = read_rows(sys.argv[2:])
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(Figure(rows).svg(rows))
    writer = csv.writer(sys.stdout)
    writer.writerow(FIELDS)
    writer.writerows((*row[:3], *(f"{seconds:.6f}" for seconds in row[3:])) for row in rows)


if __name__ == "__main__":
    main()
