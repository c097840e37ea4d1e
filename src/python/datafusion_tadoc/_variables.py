"""Rows of Python as Arrow, and the variables that a statement names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from datafusion_tadoc._native import Error

#: An error of SQL about a name that is no table.
NO_TABLE = re.compile(r"there is no table (\w+), and no file of this name")


def is_arrow(value: Any) -> bool:
    """Returns True if `value` gives its rows as Arrow.

    >>> is_arrow(connect().sql("SELECT 1")), is_arrow("text"), is_arrow(tadoc.Result)
    (True, False, False)
    """
    has_rows = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    return has_rows and not isinstance(value, type)


def arrow_rows(value: Any) -> Any:
    """Returns the rows of `value` as an object of Arrow, or None if it is no rows: a frame, a table, a list of
    dictionaries or a dictionary of lists. The last two need pyarrow or polars.

    >>> arrow_rows([{"word": "be"}, {"word": "to", "count": 2}]).to_pydict()
    {'word': ['be', 'to'], 'count': [None, 2]}
    >>> arrow_rows("text")
    """
    if is_arrow(value):
        return value
    if _is_lazy(value):
        return value.collect()
    columns = _columns(value)
    return None if columns is None else _table(columns)


def has_rows(value: Any) -> bool:
    """Returns True if :func:`arrow_rows` finds rows in `value`.

    >>> has_rows([{"word": "be"}]), has_rows({"word": ["be"]}), has_rows(["be"]), has_rows([])
    (True, True, False, False)
    """
    return is_arrow(value) or _is_lazy(value) or _columns(value) is not None


def _is_lazy(value: Any) -> bool:
    return type(value).__module__.startswith("polars.") and hasattr(value, "collect")


def _columns(value: Any) -> dict[str, list[Any]] | None:
    """Returns the columns of a list of dictionaries, or of a dictionary of lists."""
    if isinstance(value, dict) and value and all(isinstance(column, (list, tuple)) for column in value.values()):
        return {str(name): list(column) for name, column in value.items()}
    if isinstance(value, (list, tuple)) and value and all(isinstance(row, Mapping) for row in value):
        # A row may lack columns, also the first one.
        names = dict.fromkeys(name for row in value for name in row)
        return {str(name): [row.get(name) for row in value] for name in names}
    return None


def _table(columns: dict[str, list[Any]]) -> Any:
    try:
        import pyarrow
    except ImportError:
        pass
    else:
        return pyarrow.table(columns)
    try:
        import polars
    except ImportError:
        raise Error("lists and dictionaries as rows need pyarrow or polars: pip install pyarrow") from None
    return polars.DataFrame(columns)


def caller() -> FrameType:
    """Returns the frame that called this package.

    >>> caller().f_code.co_filename == tadoc._variables.__file__
    False
    """
    frame = sys._getframe()
    # As the interpreter wrote it: an absolute path would need the current folder, which may be gone.
    home = os.path.dirname(frame.f_code.co_filename)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == home:
        frame = frame.f_back
    return frame


class Variables:
    """The variables of a frame as tables: those of the function, and those of its module.

    >>> import sys
    >>> words = [{"word": "be"}]
    >>> variables = Variables(sys._getframe())
    >>> variables("words").num_rows, variables("nothing")
    (1, None)
    """

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame

    def __call__(self, name: str) -> Any:
        """Returns the rows of the variable `name`, or None if there is none, or no rows are in it."""
        found = self.find(name)
        return arrow_rows(found[0]) if found else None

    def find(self, name: str) -> tuple[Any] | None:
        """Returns the variable `name` as the only item, or None if there is none.

        >>> import sys
        >>> word = "be"
        >>> Variables(sys._getframe()).find("word")
        ('be',)
        """
        for scope in (self._frame.f_locals, self._frame.f_globals):
            if name in scope:
                return (scope[name],)
        return None


def explained(error: Error, variables: Variables | None) -> Error:
    """Returns an error about a missing table with the way to make one.

    >>> print(explained(Error("there is no table df, and no file of this name"), None))
    there is no table df, and no file of this name; con.register('df', rows) makes rows of Python a table
    """
    missing = NO_TABLE.search(str(error))
    if missing is None:
        return error
    name = missing.group(1)
    found = variables.find(name) if variables else None
    is_other = found is not None and not has_rows(found[0])
    kind = f"the variable {name} is a {type(found[0]).__name__}, and no rows; " if found and is_other else ""
    return type(error)(f"{error}; {kind}con.register({name!r}, rows) makes rows of Python a table")
