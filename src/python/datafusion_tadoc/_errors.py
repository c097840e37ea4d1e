"""Errors of the command and of SQL, with the options of Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from datafusion_tadoc._native import Error

#: Options as the command and SQL name them, and as Python does.
OPTIONS = {
    "pass --force": "pass overwrite=True",
    "pass --allow-empty": "pass allow_empty=True",
    "pass --append to add to it": "append=True adds to it",
    "--duplicate stores all once more": "duplicate=True stores all once more",
    "--drop-all drops them": "drop_all=True drops them",
    "OPTIONS ('tadoc.allow_empty' 'true')": "allow_empty=True",
    "OPTIONS ('tadoc.overwrite' 'true')": "overwrite=True",
    "OPTIONS ('tadoc.create' 'true')": "create=True",
    "UPDATE or DELETE it; without tadoc.unique_paths it is stored": "edit or drop it, or pass duplicate=True to store it",
}


def in_python(text: str) -> str:
    """Returns the text of an error with the options of Python.

    >>> in_python("a.tadoc exists; choose another name or pass --force")
    'a.tadoc exists; choose another name or pass overwrite=True'
    """
    for option, keyword in OPTIONS.items():
        text = text.replace(option, keyword)
    return text


@contextmanager
def errors_in_python() -> Iterator[None]:
    """Makes errors of statements name the options of Python.

    >>> with errors_in_python():
    ...     raise Error("no.tadoc: OPTIONS ('tadoc.create' 'true') begins a living corpus there")
    Traceback (most recent call last):
    datafusion_tadoc.Error: no.tadoc: create=True begins a living corpus there
    """
    try:
        yield
    except Error as error:
        text = in_python(str(error))
        if text == str(error):
            raise
        raise Error(text) from None
