"""Files that an ingest writes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from datafusion_tadoc._native import Error

if TYPE_CHECKING:
    from datafusion_tadoc import Location


def check_written(out: Location) -> None:
    """Raises an error if there is no file `out` on this machine.

    >>> check_written("unwritten.tadoc")
    Traceback (most recent call last):
    datafusion_tadoc.Error: unwritten.tadoc: the command ended without an error, and wrote nothing
    """
    if "://" not in os.fspath(out) and not os.path.exists(out):
        raise Error(f"{os.fspath(out)}: the command ended without an error, and wrote nothing")
