"""Corpora in a session of the package ``datafusion``.

>>> import datafusion, datafusion_tadoc as tadoc
>>> import datafusion_tadoc.datafusion as bridge
>>> _ = tadoc.ingest([("a.txt", "to be or not to be"), ("b.txt", "to do")], "bridge.tadoc", overwrite=True)
>>> ctx = datafusion.SessionContext()
>>> bridge.register(ctx)
>>> rows = ctx.sql("SELECT word, count FROM word_count('bridge.tadoc') WHERE count > 1 ORDER BY word")
>>> rows.to_pydict()
{'word': ['be', 'to'], 'count': [2, 3]}

Functions and tables run in a session of this package, on its threads, with its settings, device,
stores and memory limit: that of the argument `connection`. The session of ``datafusion`` gets a
stream of rows, and gives filters, columns and limits. These do not cross, and
``datafusion_tadoc.connect()`` has them:

- Arguments with names (``fold => true``). ``datafusion`` refuses them before it asks this package:
  ``Unsupported function argument type: fold => true``. Give arguments in order, or make the call with
  this package and register its result:
  ``ctx.register_table("t", con.word_count("x.tadoc", fold=True))``.
- ``COPY … STORED AS TADOC`` and ``STORED AS GSST``, ``INSERT``, ``UPDATE``, ``DELETE``, and tables such
  as ``"t$history"``.
- Tables, object stores, settings and memory limits of the session of ``datafusion``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import datafusion_tadoc
from datafusion_tadoc import Connection, Error, Location, Result, _native

if TYPE_CHECKING:
    import datafusion

#: File types of ``CREATE EXTERNAL TABLE … STORED AS``.
FILE_TYPES = ("TADOC", "GSST")

__all__ = ["functions", "register", "scalar_function", "table", "table_factory", "table_function"]


def register(ctx: datafusion.SessionContext, connection: Connection | None = None) -> None:
    """Registers all table functions and scalar functions, and tables ``STORED AS TADOC`` and
    ``STORED AS GSST``, with `ctx`.

    They run in `connection`, or in a new one.

    >>> import datafusion, datafusion_tadoc as tadoc
    >>> ctx = datafusion.SessionContext()
    >>> register(ctx, tadoc.connect(memory_limit="8GiB", device="cpu"))
    >>> ctx.sql("SELECT tokenize('don''t panic') AS words").to_pydict()
    {'words': [['don', 't', 'panic']]}
    """
    _native.check_host()
    import datafusion
    from datafusion.user_defined import TableFunction

    con = connection or datafusion_tadoc.connect()
    for name, kind in functions(con):
        if kind == "table":
            ctx.register_udtf(TableFunction(name, table_function(con, name), ctx))
        else:
            ctx.register_udf(datafusion.udf(scalar_function(con, name)))
    for file_type in FILE_TYPES:
        ctx.register_table_factory(file_type, table_factory(con, file_type))


def functions(connection: Connection) -> list[tuple[str, str]]:
    """Returns the names of all functions, each with its kind, ``'table'`` or ``'scalar'``.

    >>> ("word_count", "table") in functions(datafusion_tadoc.connect())
    True
    """
    listed = connection.sql("SELECT DISTINCT function, kind FROM tadoc_functions() ORDER BY function")
    return [(name, kind) for name, kind in listed.rows()]


def table(corpus: Location, connection: Connection | None = None) -> Result:
    """Returns the documents of a corpus with their user columns, for ``ctx.register_table``.

    >>> import datafusion, datafusion_tadoc as tadoc
    >>> _ = tadoc.ingest([("a.txt", "to be"), ("b.txt", "to do")], "table.tadoc", overwrite=True)
    >>> ctx = datafusion.SessionContext()
    >>> ctx.register_table("t", table("table.tadoc"))
    >>> ctx.sql("SELECT doc_id, text FROM t WHERE path = 'b.txt'").to_pydict()
    {'doc_id': [1], 'text': ['to do']}
    """
    return (connection or datafusion_tadoc.connect()).table(corpus)


def table_function(connection: Connection, name: str) -> Any:
    """Returns a table function, for ``datafusion.udtf(function, name)``.

    >>> import datafusion, datafusion_tadoc as tadoc
    >>> ctx = datafusion.SessionContext()
    >>> function = table_function(tadoc.connect(), "tadoc_functions")
    >>> ctx.register_udtf(datafusion.user_defined.TableFunction("tadoc_functions", function, ctx))
    >>> ctx.sql("SELECT kind FROM tadoc_functions() WHERE function = 'rank'").to_pydict()
    {'kind': ['table']}
    """
    return connection._session.host_function(name)


def scalar_function(connection: Connection, name: str) -> Any:
    """Returns a scalar function, for ``datafusion.udf(function)``.

    >>> import datafusion, datafusion_tadoc as tadoc
    >>> ctx = datafusion.SessionContext()
    >>> ctx.register_udf(datafusion.udf(scalar_function(tadoc.connect(), "matches")))
    >>> ctx.sql("SELECT matches('to be', 'be NOT do') AS fits").to_pydict()
    {'fits': [True]}
    """
    return connection._session.host_scalar(name)


def table_factory(connection: Connection, file_type: str = "TADOC") -> Any:
    """Returns the tables ``STORED AS TADOC`` or ``STORED AS GSST``, for
    ``ctx.register_table_factory(file_type, factory)``.

    >>> import datafusion, datafusion_tadoc as tadoc
    >>> con, ctx = tadoc.connect(), datafusion.SessionContext()
    >>> _ = tadoc.write_gsst(con.sql("SELECT 1 AS id, 'to be' AS text"), "factory.parquet")
    >>> ctx.register_table_factory("GSST", table_factory(con, "GSST"))
    >>> _ = ctx.sql("CREATE EXTERNAL TABLE g STORED AS GSST LOCATION 'factory.parquet'")
    >>> ctx.sql("SELECT id FROM g WHERE text LIKE '%be'").to_pydict()
    {'id': [1]}
    """
    if file_type not in FILE_TYPES:
        raise Error(f"file_type: got {file_type!r}, expected one of {', '.join(FILE_TYPES)}")
    return connection._session.host_factory(file_type)
