"""SQL on compressed text.

>>> import datafusion_tadoc as tadoc
>>> _ = tadoc.ingest([("a.txt", "to be or not to be"), ("b.txt", "to do")], "hello.tadoc")
>>> con = tadoc.connect()
>>> con.sql("SELECT word, count FROM word_count($1) WHERE count > 1", ["hello.tadoc"]).rows()
[('be', 2), ('to', 3)]

A corpus is a compressed file that is searched, counted and read back without decompressing it.
:func:`ingest` writes one, :func:`connect` opens a session of SQL, and :func:`open` opens a corpus
that changes. The reference of the SQL is ``sql/README.md`` of the project.

Rows travel as Arrow. ``pyarrow``, ``polars`` and ``pandas`` are used where they are installed, and
nothing but this package is needed.
"""

from __future__ import annotations

import os
import re
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datafusion_tadoc import _native
from datafusion_tadoc._native import Error, Interrupted, __version__
from datafusion_tadoc._command import check_no_options, options, paths_of, run_command
from datafusion_tadoc._connection import Connection, Parameters
from datafusion_tadoc._errors import errors_in_python
from datafusion_tadoc._functions import Location
from datafusion_tadoc._living import Living
from datafusion_tadoc._notices import Notice, warn_of
from datafusion_tadoc._output import CORPUS, check_written, one_file
from datafusion_tadoc._progress import Progress
from datafusion_tadoc._result import Result
from datafusion_tadoc._sql_text import external_table, identifier, quoted, setting
from datafusion_tadoc._variables import arrow_rows

__all__ = [
    "Connection", "Error", "Interrupted", "Living", "Location", "Notice", "Result", "__version__", "connect",
    "default_connection", "device_arrays", "execute", "ingest", "open", "read_gsst", "sql", "write_gsst",
]  # fmt: skip

def connect(
    memory_limit: int | str | None = None,
    device: str | None = None,
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    variables: bool = True,
) -> Connection:
    """Opens a session.

    `memory_limit` is a number of bytes or a text such as ``'4GiB'``, for the whole process.
    `device` is ``'auto'``, ``'cpu'`` or ``'gpu'``. `threads` is the number of threads that share a
    statement. `settings` are those of ``SET``. With ``variables=False`` statements see no variables of Python.

    >>> connect(threads=1, settings={"tadoc.max_hits": 10}).sql("SHOW tadoc.max_hits").rows()
    [('tadoc.max_hits', '10')]
    """
    return Connection(memory_limit, device, threads, settings, variables)


_default: Connection | None = None
_opening = threading.Lock()


def default_connection() -> Connection:
    """Returns the connection of :func:`sql` and :func:`execute`, which all threads share.

    >>> default_connection() is default_connection()
    True
    """
    global _default
    with _opening:
        if _default is None or _default._open is None:
            _default = connect()
        return _default


def sql(query: str, /, params: Parameters | None = None, **named: Any) -> Result:
    """Runs a statement with the default connection; see :meth:`Connection.sql`.

    >>> sql("SELECT $1 + 1 AS two", [1]).rows()
    [(2,)]
    """
    return default_connection().sql(query, params, **named)


def execute(query: str, /, params: Parameters | None = None, **named: Any) -> Result:
    """Does the same as :func:`sql`.

    >>> execute("SELECT 1").fetchone()
    (1,)
    """
    return default_connection().sql(query, params, **named)


def ingest(
    source: Any,
    out: Location,
    *,
    documents: str | None = None,
    timestamp: str | None = None,
    timezone: str | None = None,
    glob: str | Iterable[str] = (),
    html: str | None = None,
    office: str | None = None,
    charset: str | None = None,
    follow_links: bool = False,
    decompress: bool = True,
    keep_going: bool = False,
    append: bool = False,
    duplicate: bool = False,
    overwrite: bool = False,
    allow_empty: bool = False,
    tokenizer: str | None = None,
    layout: str | None = None,
    block_size: int | str | None = None,
    progress: bool = False,
    connection: Connection | None = None,
) -> Location:
    """Writes a corpus and returns its location.

    `source` is one of these:

    - an iterable of pairs of path and text (str or bytes),
    - an Arrow object, or a list of dictionaries, with a column ``text`` or ``content``, perhaps a column
      ``path``, and any others, which become user columns,
    - a path, a URL or a list of them: files, folders and globs, as ``tadoc ingest`` takes them.
      `documents` says what becomes a document: ``'files'``, ``'lines'``, ``'jsonl:FIELD'``,
      ``'csv:COLUMN'``, ``'parquet:COLUMN'`` or ``'arrow:COLUMN'``. ``timestamp='auto'`` makes a column ``ts`` of
      the times of lines or rows. These options, and those up to `duplicate`, have the names and values of the
      command. With `append` the documents are added to a living corpus, which begins where there is none.

    Pairs and Arrow objects become one file, whose name ends with ``.tadoc``. A source without documents is
    an error, unless `allow_empty` is true.

    Nothing is left behind if it fails. `progress` shows a line on a terminal while it works, and a
    summary on standard error.

    >>> ingest([("a.txt", "to be"), ("b.txt", b"or not")], "pairs.tadoc", overwrite=True)
    'pairs.tadoc'
    """
    reading = options(
        documents=documents, timestamp=timestamp, timezone=timezone, glob=glob, html=html, office=office,
        charset=charset, follow_links=follow_links, no_decompress=not decompress, keep_going=keep_going,
    )  # fmt: skip
    paths = paths_of(source)
    if paths is not None:
        writing = options(
            force=overwrite, allow_empty=allow_empty, tokenizer=tokenizer, layout=layout, block_size=block_size,
            append=append, duplicate=duplicate, quiet=not progress,
        )  # fmt: skip
        run_command("ingest", *reading, *writing, "--output", os.fspath(out), "--", *paths, progress=progress)
        check_written(out)
        return out
    if append or duplicate:
        raise TypeError("append is for files; tadoc.open(folder, create=True).append(rows) adds rows and pairs")
    check_no_options(reading)
    rows = arrow_rows(source)
    source = source if rows is None else rows
    settings: dict[str, Any] = {"overwrite": overwrite or None, "tokenizer": tokenizer, "layout": layout}
    settings |= {"allow_empty": allow_empty or None, "block_bytes": block_size}
    listed = ", ".join(
        f"'tadoc.{name}' {quoted(setting(value))}" for name, value in settings.items() if value is not None
    )
    with_options = f" OPTIONS ({listed})" if listed else ""
    target = quoted(one_file(out, CORPUS))
    con = connection or connect()
    copy = f"COPY (SELECT * FROM {{rows}}) TO {target} STORED AS TADOC{with_options}"
    if not progress:
        with errors_in_python():
            con._feed(source, copy)
        return out
    with errors_in_python(), Progress() as counted:
        con._feed(source, copy, counted.advance)
    counted.summarize(os.fspath(out), dict(con.corpus_info(out).rows()))
    return out


def write_gsst(
    source: Any,
    out: Location,
    columns: Sequence[str] | None = None,
    *,
    overwrite: bool = False,
    allow_empty: bool = False,
    row_group_rows: int | None = None,
    connection: Connection | None = None,
) -> Location:
    """Writes an Arrow object as a Parquet file whose text columns are GSST, and returns its location.

    `columns` names the columns that become GSST; all columns of text do without it. The batches of a
    stream are written as they come. Other readers of Parquet see the other columns as they are, and
    binary codes under other names, so they find no text. The name of the file ends with ``.parquet``. A file
    of that name is an error, unless `overwrite` is true, and so is an object without rows, unless
    `allow_empty` is.

    >>> names = connect().sql("SELECT 1 AS id, 'https://shop.example/item/1' AS url")
    >>> write_gsst(names, "names.parquet")
    'names.parquet'
    >>> read_gsst("names.parquet").rows()
    [(1, 'https://shop.example/item/1')]
    """
    rows = arrow_rows(source)
    if rows is None:
        raise TypeError(f"expected an Arrow object, and got {type(source).__name__}")
    options = {"overwrite": setting(overwrite), "allow_empty": setting(allow_empty)}
    if columns is not None:
        if isinstance(columns, str):
            raise TypeError("columns is a list of names")
        if not columns or any("," in column for column in columns):
            raise Error(f"columns: got {list(columns)!r}, expected names without commas, at least one")
        options["gsst_columns"] = ",".join(columns)
    if row_group_rows is not None:
        options["gsst_row_group_rows"] = str(row_group_rows)
    listed = ", ".join(f"'tadoc.{name}' {quoted(value)}" for name, value in options.items())
    target = quoted(one_file(out, ".parquet"))
    con = connection or connect()
    with errors_in_python():
        con._feed(rows, f"COPY (SELECT * FROM {{rows}}) TO {target} STORED AS GSST OPTIONS ({listed})")
    return out


def read_gsst(
    location: Location, columns: Sequence[str] | None = None, *, connection: Connection | None = None
) -> Result:
    """Returns the rows of Parquet files with GSST columns: a file, a folder or a glob.

    Batches are decoded as they are read, and only those of `columns`.

    >>> _ = write_gsst(connect().sql("SELECT 1 AS id, 'to be' AS text"), "be.parquet")
    >>> read_gsst("be.parquet", ["text"]).rows()
    [('to be',)]
    """
    con = connection or connect()
    name = f"tadoc_gsst_{uuid.uuid4().hex}"
    create = f"CREATE EXTERNAL TABLE {name} STORED AS GSST LOCATION {quoted(os.fspath(location))}"
    return con._made_table(name, create, columns)


def device_arrays(location: Location, column: str, *, device: int = 0, ahead: int = 8) -> _native.DeviceArrays:
    """Returns the text of a GSST column on a GPU, one array for each row group of a local file.

    Only the codes travel to the device. A loop over the arrays gets them in order, while `ahead` row groups are read
    and decoded; ``arrays[i]`` decodes one. Without a device it is an :class:`Error`; :func:`read_gsst`
    decodes on the cores.

    An array has ``text`` (bytes), ``offsets`` (32-bit numbers, one more than rows) and ``validity`` (one bit for each
    row, or ``None``). CuPy, PyTorch, JAX and numba take them without a copy, by ``__dlpack__`` or
    ``__cuda_array_interface__``. Libraries of Arrow's device interface, such as ``cudf``, take the array by
    ``__arrow_c_device_array__``. All of these share the memory, which stays as long as one of them.

    >>> for array in device_arrays("names.parquet", "url"):  # doctest: +SKIP
    ...     text, offsets = cupy.from_dlpack(array.text), cupy.from_dlpack(array.offsets)
    """
    if not hasattr(_native, "device_arrays"):
        raise Error("this build has no devices; read_gsst decodes on the cores")
    if ahead < 1:
        raise Error(f"ahead: got {ahead}, expected 1 or more")
    return _native.device_arrays(os.fspath(location), column, device, ahead)


def open(
    location: Location,
    *,
    create: bool = False,
    columns: Mapping[str, str] | None = None,
    table: str | None = None,
    connection: Connection | None = None,
) -> Living:
    """Opens a living corpus. With `create` it begins one where there is nothing.

    `columns` names user columns that rows may have, with their types in SQL. `table` is the name that the corpus
    has in statements of its connection. A file of a corpus can be opened, too, and it cannot be changed.

    >>> notes = open("notes_of_a_day", create=True)
    >>> notes.append([("a.txt", "to be")])
    >>> open("notes_of_a_day").documents().rows()[0][1]
    'a.txt'
    >>> letters = open("letters", create=True, columns={"author": "VARCHAR", "year": "INT"})
    >>> letters.append(letters.connection.sql("SELECT 'a' AS path, 'Dear' AS text, 'Ada' AS author, 1843 AS year"))
    >>> letters.connection.sql(f"SELECT author, year FROM {letters.table}").rows()
    [('Ada', 1843)]
    """
    con = connection or connect()
    if table is None:
        table = f"living_{uuid.uuid4().hex}"
    elif re.fullmatch("[a-z_][a-z0-9_]*", table) is None:
        raise Error(f"table: got {table!r}, expected a name of small letters, digits and _, such as notes")
    options = {"create": "true"} if create else {}
    declared = ", ".join(f"{identifier(name)} {kind}" for name, kind in (columns or {}).items())
    declared = f" ({declared})" if declared else ""
    with errors_in_python():
        con.sql(external_table(table, declared, location, options))
    return Living(location, con, table, declared)
