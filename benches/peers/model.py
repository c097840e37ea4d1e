"""The model of statements over workers: what the planner's rates, and a sample, say of the stages of a statement over a
larger corpus, beside what was measured. `workers.py --sample` uses it.

The rates are those of src/datafusion/planning/portions/division.rs, which are read from there. Those that only
src/distributed/scale.md has are below. The times of whole statements are those of EXPLAIN. "By the sample" is what was
measured of the sample, times what the rates say of the whole over what they say of the sample. So it leaves the speed of the
machine out, and checks how the stages grow.
"""

import json
import math
import os
import re
import subprocess

PLANNER = os.path.join(os.path.dirname(__file__), "../../src/datafusion/planning/portions/division.rs")
# Bytes of a packed row with its share of the words, and the part of them that connections carry.
PACKED_ROW_BYTES = 4.5
PART_ON_CONNECTIONS = 2 / 3
# Memory of open segments, as a part of the text.
OPEN_PART = 0.72
# The relative error that the model may have.
TOLERANCE = 0.3
UNITS = {"s": 1, "ms": 1e-3, "µs": 1e-6}


def rates():
    """Returns the constants of the planner, by name. Pairs have the part that is divided and that of each worker."""
    with open(PLANNER) as file:
        found = re.findall(r"^const (\w+): [^=]+= \[?([\d._e]+)(?:, ([\d._e]+))?\]?;", file.read(), re.M)
    number = lambda text: float(text.replace("_", ""))
    return {name: (number(first), number(second)) if second else number(first) for name, first, second in found}


class Shape:
    """The counts of a corpus that the model asks for."""

    def __init__(self, tadoc, file):
        shown = subprocess.run([*tadoc, "info", "--json", file], check=True, stdout=subprocess.PIPE, text=True)
        info = json.loads(shown.stdout)
        self.text_bytes, self.file_bytes = info["text_bytes"], info["file_bytes"]
        self.num_docs, self.num_elements = info["documents"], info["elements_g"]
        # Elements that documents reach, each alone, as the planner has them.
        words, num_docs = info["words"], max(self.num_docs, 1)
        exponent = min(math.log(max(self.num_elements, 2)) / math.log(max(words, 2)), 1)
        self.num_reached = num_docs * min((words / num_docs) ** exponent, self.num_elements)
        self.num_segments = info["segments"]
        self.num_words = sum(segment["distinct_words"] for segment in info["segment_list"])

    def __str__(self):
        return (
            f"{self.text_bytes / 1e9:.2f} GB of text, {self.num_docs:,} documents, {self.num_segments} segments, "
            f"{self.num_elements / 1e6:.1f} million elements, {self.num_words / 1e6:.2f} million words of dictionaries, "
            f"a file of {self.file_bytes / 1e6:.0f} MB"
        )


def estimated(explained):
    """Returns the times on the workers and in one process of an EXPLAIN, in seconds."""
    found = re.search(r"workers=\d+(?: of \d+)?: ([\d.]+) (s|ms) estimated,.* ([\d.]+) (s|ms) in one process", explained)
    if not found:
        raise SystemExit(f"no estimated times in: {explained}")
    divided, divided_unit, alone, alone_unit = found.groups()
    return float(divided) * UNITS[divided_unit], float(alone) * UNITS[alone_unit]


def predicted(shape, times, num_workers, is_added_up):
    """Returns the stages of a statement that the rates predict. `times` are those of EXPLAIN with nothing open."""
    rate = rates()
    share = rate["LARGEST_SHARE"] / num_workers
    opening = (shape.num_elements * rate["ELEMENT_NS"] + shape.num_words * rate["WORD_NS"]) / 1e9
    divided, alone = times
    opening_divided = opening * share
    if is_added_up:
        # Each worker opens the words of all segments.
        elements_ns = shape.num_elements * rate["ELEMENT_NS"] * share
        opening_divided = (elements_ns + shape.num_words * rate["WORD_NS"]) / 1e9
    stages = {
        "cold, one process, s": alone,
        "opening, one process, s": opening,
        "open, one process, s": alone - opening,
        "cold, workers, s": divided,
        "opening, workers, s": opening_divided,
        "open, workers, s": divided - opening_divided,
    }
    if is_added_up:
        packed = shape.num_elements * PACKED_ROW_BYTES / 1e6
        rows_bytes = shape.num_elements * rate["ROW_BYTES"]
        divided_ns, each_ns = rate["COMMON_ROW_NS"]
        stages["rows at each worker, s"] = shape.num_reached * (divided_ns / num_workers + each_ns) / 1e9
        stages["packed, MB"] = packed
        stages["on connections, MB"] = packed * PART_ON_CONNECTIONS * (num_workers - 1) / num_workers
        stages["memory of a worker, MB"] = (OPEN_PART * shape.text_bytes + rows_bytes) / num_workers / 1e6
    return stages


def measured(one, some, num_workers):
    """Returns the stages that were measured: `one` and `some` have the seconds `cold` and `warm` (None if not measured),
    `some` also `packed`, `sent` and `memory`, in MB."""
    share = rates()["LARGEST_SHARE"] / num_workers
    return {
        "cold, one process, s": one.cold,
        "opening, one process, s": minus(one.cold, one.warm),
        "open, one process, s": one.warm,
        "cold, workers, s": some.cold,
        "opening, workers, s": minus(some.cold, some.warm),
        "open, workers, s": some.warm,
        "rows at each worker, s": minus(some.warm, one.warm and one.warm * share),
        "packed, MB": some.packed,
        "on connections, MB": some.sent,
        "memory of a worker, MB": some.memory,
    }


def minus(one, other):
    return None if one is None or other is None else one - other


def show(name, sample, whole):
    """Prints the stages of a statement. `sample` and `whole` are pairs: predicted and measured stages."""
    for stage, by_rates in whole[0].items():
        seen, seen_of_sample = whole[1][stage], sample[1][stage]
        if seen is None and seen_of_sample is None:
            continue
        by_sample = seen_of_sample and seen_of_sample * by_rates / sample[0][stage]
        cells = [
            shown(seen_of_sample), shown(by_rates), shown(by_sample), shown(seen),
            compared(seen, by_rates), compared(seen, by_sample),
        ]
        print(f"| {name} | {stage} | {' | '.join(cells)} |", flush=True)


def shown(number):
    return "" if number is None else f"{number:.3g}" if number < 100 else f"{number:.0f}"


def compared(seen, expected):
    if seen is None or not expected:
        return ""
    ratio = seen / expected
    is_off = abs(ratio - 1) > TOLERANCE
    return f"{ratio:.2f}{' (off)' if is_off else ''}"
