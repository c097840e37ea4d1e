"""A session."""

from __future__ import annotations

import os
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from datafusion_tadoc import _native
from datafusion_tadoc._functions import Functions, Location
from datafusion_tadoc._native import Error
from datafusion_tadoc._notices import warn_of
from datafusion_tadoc._result import Result
from datafusion_tadoc._sql_text import external_table, identifier, setting
from datafusion_tadoc._variables import Variables, arrow_rows, caller, explained

Parameters = Sequence[Any] | Mapping[str, Any]


class Connection(Functions):
    """A session: tables, settings, and corpora that stay open between statements.

    Threads may share a connection. Python runs on while a statement works, and Ctrl-C ends the
    statement. Methods such as :meth:`search` call the table function of their name; the options of
    the function are keywords.

    >>> _ = ingest([("a.txt", "To be or not to be")], "session.tadoc", overwrite=True)
    >>> con = connect()
    >>> con.term_count("session.tadoc", "to", fold=True).rows()
    [(0, 'a.txt', 2)]

    A pickled connection is opened anew where it is unpickled, with the arguments of :func:`connect`. Tables
    and what ``SET`` has changed stay behind.

    >>> import pickle
    >>> pickle.loads(pickle.dumps(con)).term_count("session.tadoc", "to", fold=True).rows()
    [(0, 'a.txt', 2)]
    """

    def __init__(
        self,
        memory_limit: int | str | None = None,
        device: str | None = None,
        threads: int | None = None,
        settings: Mapping[str, Any] | None = None,
        variables: bool = True,
    ) -> None:
        self._arguments = (memory_limit, device, threads, dict(settings or {}), variables)
        self._has_variables = variables
        all_settings = {name: setting(value) for name, value in (settings or {}).items()}
        if device is not None:
            all_settings["tadoc.device"] = device
        if threads is not None:
            all_settings["datafusion.execution.target_partitions"] = str(threads)
        if isinstance(memory_limit, str):
            memory_limit = _native.size(memory_limit)
        self._open: _native.Session | None = _native.Session(memory_limit, list(all_settings.items()))

    def __reduce__(self) -> tuple[type[Connection], tuple[Any, ...]]:
        self._session  # A closed one has nothing to open anew.
        return Connection, self._arguments

    @property
    def _session(self) -> _native.Session:
        if self._open is None:
            raise Error("the connection is closed")
        return self._open

    def close(self) -> None:
        """Closes the connection. Results that it gave can still be read, and nothing else.

        >>> with connect() as con:
        ...     ones = con.sql("SELECT 1 AS one")
        >>> ones.rows()
        [(1,)]
        >>> con.sql("SELECT 1")
        Traceback (most recent call last):
        datafusion_tadoc.Error: the connection is closed
        """
        self._open = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sql(self, query: str, /, params: Parameters | None = None, **named: Any) -> Result:
        """Runs a statement, or several with semicolons between them, and returns the last result.

        Parameters stand where SQL has values, arguments of table functions too: ``$1`` or ``?``
        for a list, ``$name`` or ``:name`` for a dictionary or for keywords.

        >>> con = connect()
        >>> con.sql("SELECT $1 + $2 AS sum", [1, 2]).rows()
        [(3,)]
        >>> con.sql("SELECT tokenize(:text) AS words", text="don't panic").rows()
        [(['don', 't', 'panic'],)]

        A name that is no table is that of a variable of the caller, if it has rows: a frame, an Arrow object,
        a list of dictionaries or a dictionary of lists. See the argument `variables` of :func:`connect`.

        >>> plays = [{"play": "Hamlet", "year": 1603}, {"play": "Lear", "year": 1606}]
        >>> con.sql("SELECT play FROM plays WHERE year > $1", [1605]).rows()
        [('Lear',)]
        """
        if named and params is not None:
            raise TypeError("give parameters in params or as keywords, not both")
        variables = Variables(caller()) if self._has_variables else None
        try:
            statement = self._session.statement(query, named or params, variables)
        except Error as error:
            clear = explained(error, variables)
            if clear is error:
                raise
            raise clear from None
        warn_of(statement.notices)
        return Result(statement)

    def execute(self, query: str, /, params: Parameters | None = None, **named: Any) -> Result:
        """Does the same as :meth:`sql`, under the name that Python's interface of databases has.

        >>> connect().execute("SELECT $1 + 1", [1]).fetchone()
        (2,)
        """
        return self.sql(query, params, **named)

    def _sql(self, query: str, values: list[Any]) -> Result:
        statement = self._session.statement(query, values)
        warn_of(statement.notices)
        return Result(statement)

    def _with_rows(self, rows: Any, call: Callable[[str], Result]) -> Result:
        name = f"tadoc_rows_{uuid.uuid4().hex}"
        self.register(name, rows)
        try:
            result = call(name)
        except BaseException:
            self.unregister(name)
            raise
        # Each run of the statement reads the table.
        weakref.finalize(result._statement, self._session.unregister, name).atexit = False
        return result

    def interrupt(self) -> None:
        """Ends all statements of this connection that run. Another thread calls it. Who waits for them gets an
        :class:`Interrupted`.

        >>> import threading
        >>> con = connect()
        >>> threading.Timer(0.2, con.interrupt).start()
        >>> con.sql("SELECT count(*) FROM generate_series(1, 100000000000) AS a (n) WHERE n % 7 = 8").rows()
        Traceback (most recent call last):
        datafusion_tadoc.Interrupted: the statement was interrupted by interrupt()
        """
        self._session.interrupt()

    def register(self, name: str, rows: Any) -> None:
        """Makes rows a table: a frame, an Arrow object, another result, a list of dictionaries, a dictionary
        of lists.

        The rows are kept in memory. A table of the same name is replaced.

        >>> con = connect()
        >>> con.register("numbers", con.sql("SELECT 1 AS n UNION ALL SELECT 2"))
        >>> con.sql("SELECT sum(n) FROM numbers").rows()
        [(3,)]
        """
        found = arrow_rows(rows)
        self._session.register(name, rows if found is None else found)

    def unregister(self, name: str) -> bool:
        """Removes a table, and returns True if there was one.

        >>> con = connect()
        >>> con.register("numbers", con.sql("SELECT 1 AS n"))
        >>> con.unregister("numbers"), con.unregister("numbers")
        (True, False)
        """
        return self._session.unregister(name)

    def table(self, corpus: Location) -> Result:
        """Returns the documents of a corpus with their user columns.

        >>> letters = connect().sql("SELECT 'a.txt' AS path, 'Dear Ada' AS text, 1843 AS year")
        >>> _ = ingest(letters, "with_years.tadoc", overwrite=True)
        >>> connect().table("with_years.tadoc").columns
        ['doc_id', 'path', 'bytes', 'words', 'text', 'content', 'year']
        """
        name = f"living_{uuid.uuid4().hex}"
        return self._made_table(name, external_table(name, "", corpus, {}))

    def _made_table(self, name: str, create: str, columns: Sequence[str] | None = None) -> Result:
        """Makes a table, and returns its rows. The plan keeps the table, and its name is gone."""
        self._sql(create, [])
        try:
            return self._sql(f"SELECT {', '.join(map(identifier, columns)) if columns else '*'} FROM {name}", [])
        finally:
            self.unregister(name)

    def _feed(
        self, source: Any, statement: str, counter: Callable[[int, int], None] | None = None
    ) -> _native.Gathered:
        """Runs a statement that reads the rows of `source` from the table ``{rows}``.

        `counter` gets the number of documents and of their bytes, as they come.
        """
        name = f"tadoc_rows_{uuid.uuid4().hex}"
        return self._session.feed(name, source, statement.replace("{rows}", name), counter)
