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
stores and memory limit: that of the argument `connection`. The session of ``datafusion`` gets a stream of rows,
and gives filters, columns and limits. These do not cross, and ``datafusion_tadoc.connect()`` has them:

- Arguments with names (``fold => true``). Give arguments in order, or make the call with this package
  and register its result: ``ctx.register_table("t", con.word_count("x.tadoc", fold=True))``.
- ``COPY … STORED AS TADOC``, ``INSERT``, ``UPDATE``, ``DELETE``, and tables such as ``"t$history"``.
- Tables, object stores, settings and memory limits of the session of ``datafusion``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import datafusion_tadoc
from datafusion_tadoc import Connection, Location, Result, _native

if TYPE_CHECKING:
    import datafusion

__all__ = ["functions", "register", "scalar_function", "table", "table_factory", "table_function"]


def register(ctx: datafusion.SessionContext, connection: Connection | None = None) -> None:
    """Registers all table functions and scalar functions, and tables ``STORED AS TADOC``, with `ctx`.

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
    ctx.register_table_factory("TADOC", table_factory(con))


def functions(connection: Connection) -> list[tuple[str, str]]:
    """Returns the names of all functions, each with its kind, ``'table'`` or ``'scalar'``.

    >>> ("word_count", "table") in functions(datafusion_tadoc.connect())
    True
    """
    listed = connection.sql("SELECT DISTINCT function, kind FROM tadoc_functions() ORDER BY function")
    return [(name, kind) for name, kind in listed.rows()]


def table(corpus: Location, connection: Connection | None = None) -> Result:
    """Returns the documents of a corpus, for ``ctx.register_table``.

    >>> import datafusion, datafusion_tadoc as tadoc
    >>> _ = tadoc.ingest([("a.txt", "to be"), ("b.txt", "to do")], "table.tadoc", overwrite=True)
    >>> ctx = datafusion.SessionContext()
    >>> ctx.register_table("t", table("table.tadoc"))
    >>> ctx.sql("SELECT doc_id, text FROM t WHERE path = 'b.txt'").to_pydict()
    {'doc_id': [1], 'text': ['to do']}
    """
    return (connection or datafusion_tadoc.connect()).documents(corpus)


def table_function(connection: Connection, name: str) -> Any:
    """Returns a table function, for ``datafusion.udtf(function, name)``."""
    return connection._session.host_function(name)


def scalar_function(connection: Connection, name: str) -> Any:
    """Returns a scalar function, for ``datafusion.udf(function)``."""
    return connection._session.host_scalar(name)


def table_factory(connection: Connection) -> Any:
    """Returns the tables ``STORED AS TADOC``, for ``ctx.register_table_factory("TADOC", factory)``."""
    return connection._session.host_factory()
