"""Names of the files that rows are written to."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from datafusion_tadoc._native import Error

if TYPE_CHECKING:
    from datafusion_tadoc import Location


#: Ending of the files of corpora.
CORPUS = ".tadoc"


def one_file(out: Location, ending: str) -> str:
    """Returns the path or URL that ``COPY`` writes as this one file, whose name has this ending.

    >>> one_file("plays.tadoc", ".tadoc")
    'plays.tadoc'
    >>> one_file("plays", ".tadoc")
    Traceback (most recent call last):
    datafusion_tadoc.Error: plays: expected the name of a file that ends with .tadoc, such as plays.tadoc
    """
    name = os.fspath(out)
    if os.path.isdir(name):
        living = ", or add to a living corpus with open(…).append(rows)" if ending == CORPUS else ""
        raise Error(f"{name} is a folder; name a file{living}")
    if not name.endswith(ending):
        example = f"{name.rstrip('/') or ('corpus' if ending == CORPUS else 'rows')}{ending}"
        raise Error(f"{name}: expected the name of a file that ends with {ending}, such as {example}")
    if re.search(r"[*?\[]", name):
        raise Error(f"{name}: a name with *, ? or [ is a pattern for several files; name one file")
    if re.match(r"[^/]*:(?!//)", name):
        raise Error(f"{name}: what stands before the colon is the scheme of a URL; for a file write ./{name}")
    return name


def check_written(out: Location) -> None:
    """Raises an error if there is no file `out` on this machine.

    >>> check_written("unwritten.tadoc")
    Traceback (most recent call last):
    datafusion_tadoc.Error: unwritten.tadoc: the command ended without an error, and wrote nothing
    """
    if "://" not in os.fspath(out) and not os.path.exists(out):
        raise Error(f"{os.fspath(out)}: the command ended without an error, and wrote nothing")
