#!/usr/bin/env python3
"""How many lines of logs get a time from `--timestamp auto`, and does an independent parser agree?

    python benches/peers/timestamps.py TADOC LOG...        needs the package python-dateutil

Each LOG is ingested with `--documents lines --timestamp auto`, and the times are read by SQL. dateutil reads the head of
the same lines: the longest run of their first fields that it takes as a time with a year or a month, and no text. A line
counts as compared if both give a time, and as different if the times differ by more than a millisecond. Times without
a year are compared without it, times without a zone as UTC.
"""

import csv
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from datetime import datetime, timezone

from dateutil import parser

HEAD = 6
DEFAULTS = [datetime(2000, 1, 1), datetime(2004, 2, 2)]
YEARS = range(1990, 2100)
NUMBERS = re.compile(r"^\d{10}(\.\d+)?$")


def ours(tadoc, log, folder):
    """Returns the time of each line as text."""
    corpus = os.path.join(folder, "c.tadoc")
    command = [tadoc, "ingest", log, "--documents", "lines", "--timestamp", "auto", "-o", corpus, "--force", "-q"]
    subprocess.run(command, check=True)
    sql = f"CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{corpus}'; SELECT ts FROM d ORDER BY doc_id"
    out = subprocess.run([tadoc, "sql", "--format", "csv", "-q", "-c", sql], check=True, capture_output=True, text=True)
    rows = csv.reader(io.StringIO(out.stdout))
    next(rows)
    return [row[0] if row else "" for row in rows]


def theirs(line):
    """Returns the time that dateutil reads in the first fields of `line`, and True if it has a year."""
    fields = line.strip().lstrip("[<(\"'").replace("]", " ").replace("|", " ").split()
    if fields and NUMBERS.match(fields[0]):
        return datetime.fromtimestamp(float(fields[0]), timezone.utc), True
    for num_fields in range(min(HEAD, len(fields)), 1, -1):
        text = " ".join(fields[:num_fields])
        try:
            one, two = (parser.parse(text, default=default, yearfirst=True) for default in DEFAULTS)
        except (ValueError, OverflowError):
            continue
        # It takes numbers of processes for years.
        if one.year == two.year and one.year not in YEARS:
            continue
        # The defaults show which parts the text states.
        if (one.month, one.day) != (two.month, two.day) or ":" not in text:
            continue
        return (one if one.tzinfo else one.replace(tzinfo=timezone.utc)), one.year == two.year
    return None


def compare(times, lines):
    """Returns the numbers of lines with a time of ours, and of lines compared and different, and the first of these."""
    num_times = num_compared = 0
    different = []
    for time, line in zip(times, lines, strict=True):
        if not time:
            continue
        num_times += 1
        got = datetime.fromisoformat(time.replace("Z", "+00:00"))
        expected = theirs(line)
        if expected is None:
            continue
        moment, has_year = expected
        if not has_year:
            moment = moment.replace(year=got.year)
        num_compared += 1
        if abs((got - moment).total_seconds()) > 0.001:
            different.append((line[:80], time, moment.isoformat()))
    return num_times, num_compared, different


def main():
    tadoc, *logs = sys.argv[1:]
    # Levels such as INFO are no zones.
    warnings.simplefilter("ignore", parser.UnknownTimezoneWarning)
    print(f"{'log':<28} {'lines':>8} {'time':>7} {'compared':>9} {'different':>9}")
    num_different = 0
    with tempfile.TemporaryDirectory() as folder:
        for log in logs:
            with open(log, encoding="utf-8", errors="replace", newline="") as file:
                lines = file.read().split("\n")
            if lines and not lines[-1]:
                lines.pop()
            times = ours(tadoc, log, folder)
            num_times, num_compared, different = compare(times, lines)
            share = 100 * num_times / max(len(lines), 1)
            print(f"{os.path.basename(log):<28} {len(lines):>8} {share:>5.1f} % {num_compared:>9} {len(different):>9}")
            for line, got, expected in different[:2]:
                print(f"    {line!r}: {got}, dateutil {expected}")
            num_different += len(different)
    sys.exit(1 if num_different else 0)


if __name__ == "__main__":
    main()
