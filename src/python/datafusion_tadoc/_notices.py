"""Notices about statements, as warnings."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable

HOME = os.path.dirname(os.path.abspath(__file__))


class Notice(UserWarning):
    """A statement does something that its author may not have meant.

    >>> import datafusion_tadoc as tadoc
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always", tadoc.Notice)
    ...     _ = tadoc.connect().sql("SELECT matches('my heart', 'heart or soul')")
    >>> print(told[0].message)
    the query `heart or soul` asks for the word `or`, too; write OR for the operator, or "or" in quotes for the word
    """


def warn_of(notices: Iterable[str]) -> None:
    """Warns of notices, at the line that called this package.

    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     warn_of(["the query asks for the word `or`, too"])
    >>> [(str(warning.message), warning.category.__name__) for warning in told]
    [('the query asks for the word `or`, too', 'Notice')]
    """
    for notice in notices:
        warnings.warn(notice, Notice, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """Returns the number of frames between :func:`warn_of` and the program, counted from 1."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(HOME + os.sep):
        level, frame = level + 1, frame.f_back
    return level
