"""The rows of a statement, and an iterator over them.

A query runs each time that its rows are asked for. An iterator runs it once, and keeps one batch of rows.
"""

from __future__ import annotations

import html
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from datafusion_tadoc import _native
from datafusion_tadoc._native import Error

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: Rows that `show` and notebooks print.
SHOWN_ROWS = 40
#: Characters of a cell that they print.
SHOWN_WIDTH = 120
#: Columns that notebooks print.
SHOWN_COLUMNS = 50
#: Rows and characters of a cell of `repr`.
REPR_ROWS, REPR_WIDTH = 10, 40


class Rows(Iterator[tuple[Any, ...]]):
    """The rows of one run of a statement, as they come. The run begins with the first row that is asked for.

    >>> rows = Rows(connect().sql("SELECT * FROM generate_series(1, 3)")._statement)
    >>> next(rows), list(rows), list(rows)
    ((1,), [(2,), (3,)], [])
    """

    def __init__(self, statement: _native.Statement) -> None:
        self._statement = statement
        self._batches: Iterator[_native.Gathered] | None = None
        self._rows: Iterator[tuple[Any, ...]] = iter(())

    def __next__(self) -> tuple[Any, ...]:
        if self._batches is None:
            self._batches = batches(self._statement)
        while True:
            for row in self._rows:
                return row
            self._rows = iter(next(self._batches).rows())

    def count(self) -> int | None:
        """Returns the number of rows if none was taken yet. They are in memory then, and taken from there.

        >>> rows = Rows(connect().sql("SELECT * FROM generate_series(1, 3)")._statement)
        >>> rows.count(), list(rows), rows.count()
        (3, [(1,), (2,), (3,)], None)
        """
        if self._batches is not None:
            return None
        gathered = self._statement.gather()
        self._batches = iter([gathered])
        return len(gathered)


def batches(statement: _native.Statement) -> Iterator[_native.Gathered]:
    """Runs a statement and gives its rows batch by batch.

    >>> [batch.rows() for batch in batches(connect().sql("SELECT 1 AS one")._statement)]
    [[(1,)]]
    """
    running = statement.batches()
    while (batch := running.next()) is not None:
        yield batch


class Result:
    """The rows of a statement.

    A query runs each time that its rows are asked for, and not before. Other statements have run
    when the result exists. Any library that reads Arrow takes a result as it is
    (``pyarrow.table(result)``, ``polars.DataFrame(result)``, ``duckdb.sql("FROM result")``), and
    reads its rows as they come.

    >>> numbers = connect().sql("SELECT * FROM (VALUES (1, 'one'), (2, NULL)) AS t (number, name)")
    >>> numbers
    +--------+------+
    | number | name |
    +--------+------+
    | 1      | one  |
    | 2      | NULL |
    +--------+------+
    >>> numbers.rows()
    [(1, 'one'), (2, None)]
    >>> for number, name in numbers:
    ...     print(number, name)
    1 one
    2 None
    >>> len(numbers)
    2
    """

    def __init__(self, statement: _native.Statement) -> None:
        self._statement = statement
        # `list(result)` asks for the length when it has an iterator, and the query must not run twice.
        self._latest: weakref.ref[Rows] | None = None
        self._cursor: Rows | None = None

    @property
    def schema(self) -> list[tuple[str, str]]:
        """The names and Arrow types of the columns.

        >>> connect().sql("SELECT 1 AS one").schema
        [('one', 'Int64')]
        """
        return self._statement.columns

    @property
    def columns(self) -> list[str]:
        """The names of the columns.

        >>> connect().sql("SELECT 1 AS one").columns
        ['one']
        """
        return [name for name, _ in self.schema]

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, None]]:
        """The columns as in Python's interface of databases: names, types, and nothing else.

        >>> connect().sql("SELECT 1 AS one").description
        [('one', 'Int64', None, None, None, None, None)]
        """
        return [(name, kind, None, None, None, None, None) for name, kind in self.schema]

    def rows(self, limit: int | None = None) -> list[tuple[Any, ...]]:
        """Returns the rows, at most `limit`, as tuples of Python values.

        >>> connect().sql("SELECT [1, 2] AS list, DATE '2026-11-24' AS day").rows()
        [([1, 2], datetime.date(2026, 11, 24))]
        """
        return self._statement.gather(limit).rows()

    def fetchone(self) -> tuple[Any, ...] | None:
        """Returns the next row, or None behind the last one. The query runs once for all calls.

        >>> numbers = connect().execute("SELECT * FROM generate_series(1, 3)")
        >>> numbers.fetchone(), numbers.fetchmany(5), numbers.fetchone()
        ((1,), [(2,), (3,)], None)
        """
        return next(self._fetched(), None)

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """Returns the next rows, at most `size`.

        >>> numbers = connect().execute("SELECT * FROM generate_series(1, 3)")
        >>> numbers.fetchmany(2), numbers.fetchmany(2), numbers.fetchmany(2)
        ([(1,), (2,)], [(3,)], [])
        """
        if size < 0:
            raise ValueError(f"size: got {size}, expected a number of rows, 0 or more")
        rows = self._fetched()
        return [row for _, row in zip(range(size), rows)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Returns all rows, or those behind the rows that `fetchone` and `fetchmany` have returned.

        >>> numbers = connect().execute("SELECT * FROM generate_series(1, 3)")
        >>> numbers.fetchall()
        [(1,), (2,), (3,)]
        >>> numbers.fetchone(), numbers.fetchall()
        ((1,), [(2,), (3,)])
        """
        return self.rows() if self._cursor is None else list(self._cursor)

    def _fetched(self) -> Rows:
        if self._cursor is None:
            self._cursor = Rows(self._statement)
        return self._cursor

    def arrow(self) -> pyarrow.Table:
        """Returns the rows as a table of pyarrow.

        >>> connect().sql("SELECT 1 AS one, 'be' AS word").arrow().to_pydict()
        {'one': [1], 'word': ['be']}
        """
        import pyarrow

        return pyarrow.table(self._statement.gather())

    def fetch_record_batch(self) -> pyarrow.RecordBatchReader:
        """Returns a reader of pyarrow, which reads rows as they come. Ctrl-C is a KeyboardInterrupt in it.

        >>> reader = connect().sql("SELECT 1 AS one").fetch_record_batch()
        >>> reader.read_all().to_pydict()
        {'one': [1]}
        """
        import pyarrow

        schema = pyarrow.schema(self)
        return pyarrow.RecordBatchReader.from_batches(schema, self._record_batches())

    def _record_batches(self) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        for batch in batches(self._statement):
            yield from pyarrow.table(batch).to_batches()

    def pl(self) -> polars.DataFrame:
        """Returns the rows as a frame of polars.

        >>> connect().sql("SELECT 1 AS one, 'be' AS word").pl().rows()
        [(1, 'be')]
        """
        import polars

        return polars.DataFrame(self._statement.gather().usual(True))

    def df(self) -> pandas.DataFrame:
        """Returns the rows as a frame of pandas, which needs pyarrow.

        >>> connect().sql("SELECT 1 AS one, 'be' AS word").df().to_dict("records")
        [{'one': 1, 'word': 'be'}]
        """
        import pyarrow

        return pyarrow.table(self._statement.gather().usual(False)).to_pandas()

    # Other names that people know from DuckDB.
    fetchdf = to_df = df
    fetch_arrow_table = to_arrow_table = arrow
    to_arrow_reader = fetch_record_batch

    def show(self, limit: int = SHOWN_ROWS, max_width: int | None = SHOWN_WIDTH) -> None:
        """Prints the first rows. A cell has one line with at most `max_width` characters, and says how much
        of it was cut. With ``max_width=None`` it has all.

        >>> connect().sql("SELECT 1 AS one, 'be' AS word").show()
        +-----+------+
        | one | word |
        +-----+------+
        | 1   | be   |
        +-----+------+
        >>> connect().sql("SELECT 'to be or not to be' AS text").show(max_width=5)
        +------------------+
        | text             |
        +------------------+
        | to be … 13 bytes |
        +------------------+
        """
        if max_width is not None and max_width < 1:
            raise ValueError(f"max_width: got {max_width}, expected a number above 0, or None for all")
        preview = self._statement.preview(limit, max_width)
        print(preview.text())
        if preview.has_more:
            print(f"the first {limit} rows; show(limit=N) shows more")

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        rows = Rows(self._statement)
        self._latest = weakref.ref(rows)
        return rows

    def __len__(self) -> int:
        latest = self._latest() if self._latest is not None else None
        counted = latest.count() if latest is not None else None
        return sum(map(len, batches(self._statement))) if counted is None else counted

    def __bool__(self) -> bool:
        """True if there is a row. The query ends when it has one."""
        return len(self._statement.gather(1)) > 0

    def __repr__(self) -> str:
        if not self.schema:
            return "<Result: no rows>"
        try:
            preview = self._statement.preview(REPR_ROWS, REPR_WIDTH)
        except Error as error:
            # Debuggers show values, and a value that cannot be shown must not end a program.
            return f"<Result: {', '.join(f'{name} {kind}' for name, kind in self.schema)}; error: {error}>"
        more = f"\nthe first {REPR_ROWS} rows; show() shows more" if preview.has_more else ""
        return preview.text() + more

    def _repr_html_(self) -> str:
        return in_html(self._statement.preview(SHOWN_ROWS, SHOWN_WIDTH))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Returns the forms that notebooks show, of one run. Without it they ask for each, and the query runs twice."""
        preview = self._statement.preview(SHOWN_ROWS, SHOWN_WIDTH)
        return {"text/plain": preview.text(), "text/html": in_html(preview)}

    def __reduce__(self) -> Any:
        raise TypeError("a result cannot be pickled; pickle its rows, arrow(), or the connection and the statement")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._statement.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._statement.__arrow_c_schema__()

    def __datafusion_table_provider__(self, session: Any) -> Any:
        """Makes the result a table of a session of the package ``datafusion``:
        ``ctx.register_table("t", result)``. See :mod:`datafusion_tadoc.datafusion`."""
        return self._statement.__datafusion_table_provider__(session)


def in_html(preview: _native.Preview) -> str:
    """Returns the first rows as a table in HTML.

    >>> in_html(connect().sql("SELECT '<' AS sign")._statement.preview(1, 9))
    '<table><thead><tr><th>sign</th></tr></thead><tbody><tr><td>&lt;</td></tr></tbody></table>'
    """
    names, rows = preview.cells()
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names[:SHOWN_COLUMNS])
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[:SHOWN_COLUMNS]) + "</tr>" for row in rows
    )
    more = f"<p>the first {SHOWN_ROWS} rows</p>" if preview.has_more else ""
    if len(names) > SHOWN_COLUMNS:
        more += f"<p>the first {SHOWN_COLUMNS} of {len(names)} columns</p>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
