"""The progress of an ingest of rows from Python, as the command shows that of files: a line on a terminal, or in the
cell of a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any

#: Seconds without a line, as short work does not need one.
SHOW_AFTER = 2.0
#: Seconds between two lines.
DRAW_EVERY = 0.2
ERASE = "\r\x1b[K"
#: Begin of a line in a notebook, which knows no more than the return to its first column.
RETURN = "\r"


def is_notebook() -> bool:
    """Returns true if standard error is shown in the cell of a notebook.

    >>> is_notebook()
    False
    """
    # A notebook has imported both before it runs a cell.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class Progress:
    """A line that counts documents and bytes, and a summary on standard error.

    >>> with Progress() as progress:
    ...     progress.advance(2, 1_500_000)
    >>> progress.counted()
    '2 documents, 1.5 MB of text'
    """

    def __init__(self) -> None:
        self.documents = self.text_bytes = 0
        self.started = time.monotonic()
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.is_watched = is_terminal or is_notebook()
        self.erase = ERASE if is_terminal else RETURN
        self.draw_at = self.started + SHOW_AFTER
        #: Characters of the line that is shown.
        self.width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.width > 0:
            self.draw("")
            print(self.erase, end="", file=sys.stderr, flush=True)

    def advance(self, documents: int, text_bytes: int) -> None:
        """Adds documents and their bytes, and draws the line if it is time."""
        self.documents += documents
        self.text_bytes += text_bytes
        if self.is_watched and time.monotonic() >= self.draw_at:
            self.draw_at = time.monotonic() + DRAW_EVERY
            self.draw(f"{self.counted()}, {self.rate()}")

    def draw(self, line: str) -> None:
        """Draws a line in the place of the one before."""
        # A notebook does not erase what a shorter line leaves.
        padded = line if self.erase == ERASE else line.ljust(self.width)
        print(f"{self.erase}{padded}", end="", file=sys.stderr, flush=True)
        self.width = len(line)

    def counted(self) -> str:
        """Returns what was counted, for people."""
        noun = "document" if self.documents == 1 else "documents"
        return f"{self.documents:,} {noun}, {size(self.text_bytes)} of text"

    def rate(self) -> str:
        """Returns the rate since the start."""
        return f"{self.text_bytes / 1e6 / max(time.monotonic() - self.started, 1e-9):.1f} MB/s"

    def summarize(self, out: str, facts: dict[str, str]) -> None:
        """Prints the sizes of the corpus `out`, from the rows of ``corpus_info``."""
        file_bytes, text_bytes = int(facts["file_bytes"]), int(facts["text_bytes"])
        percent = f" ({100 * file_bytes / text_bytes:.1f} %)" if text_bytes else ""
        reuse = f", G/N {float(facts['reuse']):.3f}" if facts["tokens"] != "0" else ""
        seconds = time.monotonic() - self.started
        print(f"{out}: {self.counted()} in {size(file_bytes)}{percent}{reuse}", file=sys.stderr)
        print(f"{seconds:.2f} s, {self.rate()}", file=sys.stderr, flush=True)


def size(num_bytes: int) -> str:
    """Returns a number of bytes in decimal units.

    >>> [size(n) for n in (1, 999, 1000, 45_200_000)]
    ['1 byte', '999 bytes', '1.0 kB', '45.2 MB']
    """
    if num_bytes < 1000:
        return f"{num_bytes} byte{'' if num_bytes == 1 else 's'}"
    value = num_bytes / 1000
    for unit in ("kB", "MB", "GB"):
        if value < 999.95:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
