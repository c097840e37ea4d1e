"""Values of Python as parts of SQL statements."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def setting(value: Any) -> str:
    """Returns a value as ``SET`` takes it.

    >>> setting(True), setting(10)
    ('true', '10')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def quoted(text: str) -> str:
    """Returns a literal.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Returns a name in quotes.

    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def external_table(name: str, declared: str, location: str | os.PathLike[str], options: Mapping[str, str]) -> str:
    """Returns the statement that makes the corpus at `location` the table `name`.

    >>> external_table("t", "", "notes/", {"create": "true"})
    "CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION 'notes/' OPTIONS ('tadoc.create' 'true')"
    """
    listed = ", ".join(f"'tadoc.{option}' {quoted(value)}" for option, value in options.items())
    with_options = f" OPTIONS ({listed})" if listed else ""
    target = quoted(os.fspath(location))
    return f"CREATE EXTERNAL TABLE {name}{declared} STORED AS TADOC LOCATION {target}{with_options}"
