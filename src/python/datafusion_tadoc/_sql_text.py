"""Values of Python as parts of SQL statements."""

from __future__ import annotations

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
