"""Living corpora."""

from __future__ import annotations

import json
import operator
import os
import threading
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from datafusion_tadoc._command import check_no_options, options, paths_of, run_command
from datafusion_tadoc._errors import errors_in_python
from datafusion_tadoc._native import Error
from datafusion_tadoc._sql_text import external_table, identifier
from datafusion_tadoc._variables import arrow_rows

if TYPE_CHECKING:
    from datafusion_tadoc._connection import Connection, Parameters
    from datafusion_tadoc._functions import Location
    from datafusion_tadoc._result import Result


class Living:
    """A living corpus: a folder whose documents are added, edited and dropped.

    Each method is one commit, which is durable when the method returns.

    >>> corpus = tadoc.open("living_example", create=True)
    >>> corpus.append([("a.txt", "to be"), ("b.txt", "or not")])
    >>> corpus.edit(0, text=" or not to be")
    >>> corpus.drop([1])
    >>> corpus.documents().rows()[0][4]
    'to be or not to be'
    >>> [kind for (kind,) in corpus.connection.sql(f'SELECT kind FROM "{corpus.table}$history"').rows()]
    ['create', 'insert', 'edit', 'delete']

    A corpus is closed with ``with``, and a file is opened as a folder is, only that it cannot be changed:

    >>> _ = tadoc.ingest([("a.txt", "to be")], "opened.tadoc", overwrite=True)
    >>> with tadoc.open("opened.tadoc", table="plays") as corpus:
    ...     corpus.sql("SELECT path, words FROM plays").rows()
    [('a.txt', 2)]

    A pickled corpus is opened anew where it is unpickled, in a connection of its own.
    """

    def __init__(self, location: Location, connection: Connection, table: str, declared: str = "") -> None:
        #: The folder or URL of the corpus.
        self.location = location
        #: The session of the corpus. Its statements see the corpus as the table `table`.
        self.connection = connection
        self.table = table
        self._declared = declared
        self._unique: str | None = None
        self._making = threading.Lock()

    def __enter__(self) -> Living:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return reopened, (self.location, self.connection, self.table, self._declared)

    def close(self) -> None:
        """Closes the connection of the corpus.

        >>> corpus = tadoc.open("closed", create=True)
        >>> corpus.close()
        >>> corpus.documents()
        Traceback (most recent call last):
        datafusion_tadoc.Error: the connection is closed
        """
        self.connection.close()

    def sql(self, query: str, /, params: Parameters | None = None, **named: Any) -> Result:
        """Runs a statement in the connection of the corpus, which is the table `table` there.

        >>> corpus = tadoc.open("asked", create=True, table="notes")
        >>> corpus.append([("a.txt", "to be")])
        >>> corpus.sql("SELECT path FROM notes WHERE words = $1", [2]).rows()
        [('a.txt',)]
        """
        return self.connection.sql(query, params, **named)

    def append(
        self,
        source: Any,
        *,
        duplicate: bool = False,
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
    ) -> None:
        """Adds documents, from pairs of path and text, from an Arrow object, from a list of dictionaries, or from
        paths of files, folders and globs.

        A path that the corpus has already is an error, and nothing is added, unless `duplicate` is true. That holds
        for appends at the same time, too. The other options are those of :func:`ingest`, for files.

        >>> corpus = tadoc.open("appended", create=True)
        >>> corpus.append([("a.txt", "to be")])
        >>> corpus.append(corpus.connection.sql("SELECT 'b.txt' AS path, 'to do' AS text"))
        >>> sorted(row[:2] for row in corpus.documents())
        [(0, 'a.txt'), (1, 'b.txt')]
        >>> corpus.append([("a.txt", "to be")])
        Traceback (most recent call last):
        datafusion_tadoc.Error: appended: a document a.txt is there already; nothing was added: edit or drop it, \
or pass duplicate=True to store it once more
        >>> corpus.append([("a.txt", "to be")], duplicate=True)
        >>> import pathlib
        >>> _ = pathlib.Path("some.log").write_text("2024-05-06 07:08:09 up\\n2024-05-06 07:08:10 down\\n")
        >>> corpus.append("some.log", documents="lines", timestamp="auto")
        >>> corpus.sql(f"SELECT max(ts) FROM {corpus.table}").fetchone()[0].second
        10
        """
        reading = options(
            documents=documents, timestamp=timestamp, timezone=timezone, glob=glob, html=html, office=office,
            charset=charset, follow_links=follow_links, no_decompress=not decompress, keep_going=keep_going,
        )  # fmt: skip
        paths = paths_of(source)
        if paths is not None:
            flags = [*reading, *options(append=True, quiet=True, duplicate=duplicate)]
            run_command("ingest", *flags, "--output", os.fspath(self.location), "--", *paths)
            # Files may have brought user columns, which a table has from its beginning.
            table = external_table(self.table, self._declared, self.location, {})
            self.connection.sql(table.replace("CREATE ", "CREATE OR REPLACE ", 1))
            self._unique = None
            return
        check_no_options(reading)
        table = self.table if duplicate else self._unique_table()
        rows = arrow_rows(source)
        with errors_in_python():
            if rows is None:
                insert = f"INSERT INTO {table} (path, content) SELECT path, content FROM {{rows}}"
                self.connection._feed(source, insert)
                return
            # INSERT matches columns by position, so they are named.
            name = f"tadoc_columns_{uuid.uuid4().hex}"
            self.connection.register(name, rows)
            try:
                columns = self.connection.sql(f"SELECT * FROM {name}").columns
                names = ", ".join(identifier(column) for column in columns)
                self.connection.sql(f"INSERT INTO {table} ({names}) SELECT {names} FROM {name}")
            finally:
                self.connection.unregister(name)

    def _unique_table(self) -> str:
        """Returns the table of the corpus that refuses documents whose path is there."""
        with self._making:
            if self._unique is None:
                name = f"living_{uuid.uuid4().hex}"
                self.connection.sql(external_table(name, self._declared, self.location, {"unique_paths": "true"}))
                self._unique = name
            return self._unique

    def edit(
        self, doc_id: int, pos: int | None = None, len_bytes: int | None = None, text: str | None = None
    ) -> None:
        """Changes bytes of a document: inserts `text` at `pos`, appends it if there is no `pos`, or
        deletes `len_bytes` at `pos`.

        >>> corpus = tadoc.open("edited", create=True)
        >>> corpus.append([("a.txt", "be not")])
        >>> corpus.edit(0, pos=0, text="to ")
        >>> corpus.edit(0, pos=5, len_bytes=4)
        >>> corpus.edit(0, text=" or not")
        >>> corpus.documents().rows()[0][4]
        'to be or not'
        """
        if text is not None and not isinstance(text, str):
            raise TypeError(f"text is a str, and not {type(text).__name__}")
        insert = f'INSERT INTO "{self.table}$edits" (doc_id, pos, len_bytes, text) VALUES ($1, $2, $3, $4)'
        self.connection.sql(insert, [doc_id, pos, len_bytes, text])

    def drop(self, doc_ids: Iterable[int]) -> None:
        """Drops documents.

        Their ids are not given again. An id that no document has is an error, and nothing is dropped.

        >>> corpus = tadoc.open("dropped", create=True)
        >>> corpus.append([("a.txt", "to be"), ("b.txt", "to do")])
        >>> corpus.drop([0])
        >>> [row[:2] for row in corpus.documents()]
        [(1, 'b.txt')]
        >>> corpus.drop([0])
        Traceback (most recent call last):
        datafusion_tadoc.Error: dropped: there is no document 0; nothing was dropped
        """
        if isinstance(doc_ids, (str, bytes)):
            raise TypeError("doc_ids are integers, such as [0, 7], and not a text")
        asked = {_integer(doc_id) for doc_id in doc_ids}
        if not asked:
            return
        is_asked = f"doc_id IN ({', '.join(map(str, sorted(asked)))})"
        there = self.connection.sql(f"SELECT doc_id FROM {self.table} WHERE {is_asked}").rows()
        missing = sorted(asked - {doc_id for (doc_id,) in there})
        if missing:
            others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise Error(f"{os.fspath(self.location)}: there is no document {missing[0]}{others}; nothing was dropped")
        self.connection.sql(f"DELETE FROM {self.table} WHERE {is_asked}")

    def sync(
        self,
        folder: Location,
        *,
        glob: str | Iterable[str] = (),
        html: str | None = None,
        office: str | None = None,
        charset: str | None = None,
        follow_links: bool = False,
        decompress: bool = True,
        keep_going: bool = False,
        drop_all: bool = False,
        dry_run: bool = False,
    ) -> dict[str, int]:
        """Makes the corpus equal to a folder of files, in one commit, and returns the numbers of documents.

        Documents of new files are added, changed ones are stored anew under another id, and those without a
        file are dropped. Files with the size and time of the last sync are not read. Options are those of
        ``tadoc sync``. It runs in a process of its own.

        >>> corpus = tadoc.open("in_step", create=True)
        >>> import pathlib
        >>> pathlib.Path("some_notes").mkdir()
        >>> _ = pathlib.Path("some_notes/a.txt").write_text("to be")
        >>> _ = pathlib.Path("some_notes/b.txt").write_text("or not")
        >>> corpus.sync("some_notes")
        {'added': 2, 'changed': 0, 'dropped': 0, 'unchanged': 0}
        >>> pathlib.Path("some_notes/b.txt").unlink()
        >>> corpus.sync("some_notes")
        {'added': 0, 'changed': 0, 'dropped': 1, 'unchanged': 1}
        """
        flags = options(
            glob=glob, html=html, office=office, charset=charset, follow_links=follow_links,
            no_decompress=not decompress, keep_going=keep_going, drop_all=drop_all, dry_run=dry_run,
        )  # fmt: skip
        said = run_command(
            "sync", "--json", *flags, "--", os.fspath(folder), os.fspath(self.location), is_read=True
        )
        counts = json.loads(said)
        return {name: counts[name] for name in ("added", "changed", "dropped", "unchanged")}

    def history(self) -> Result:
        """Returns the versions.

        >>> corpus = tadoc.open("versions", create=True)
        >>> corpus.append([("a.txt", "to be")])
        >>> history = corpus.history()
        >>> [row[history.columns.index("kind")] for row in history]
        ['create', 'insert']
        """
        return self.connection.sql(f'SELECT * FROM "{self.table}$history"')

    def documents(self) -> Result:
        """Returns the documents of the latest version.

        >>> corpus = tadoc.open("latest", create=True)
        >>> corpus.append([("a.txt", "to be")])
        >>> [row[:5] for row in corpus.documents()]
        [(0, 'a.txt', 5, 2, 'to be')]
        """
        return self.connection.documents(self.location)

    def optimize(self) -> None:
        """Compresses the corpus anew, in a process of its own.

        >>> corpus = tadoc.open("compressed", create=True)
        >>> corpus.append([("a.txt", "to be")])
        >>> corpus.edit(0, text=" or not")
        >>> corpus.optimize()
        >>> corpus.documents().rows()[0][4]
        'to be or not'
        """
        run_command("optimize", "--quiet", "--", os.fspath(self.location))


def reopened(location: Location, connection: Connection, table: str, declared: str) -> Living:
    """Opens a corpus that was pickled.

    >>> import pickle
    >>> corpus = tadoc.open("pickled", create=True)
    >>> corpus.append([("a.txt", "to be")])
    >>> pickle.loads(pickle.dumps(corpus)).documents().rows()[0][1]
    'a.txt'
    """
    connection.sql(external_table(table, declared, location, {}))
    return Living(location, connection, table, declared)


def _integer(doc_id: Any) -> int:
    if isinstance(doc_id, bool):
        raise TypeError("doc_ids are integers, and not bool")
    return operator.index(doc_id)
