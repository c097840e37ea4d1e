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

import html
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from datafusion_tadoc import _native
from datafusion_tadoc._native import Error, __version__
from datafusion_tadoc._command import run_command
from datafusion_tadoc._errors import errors_in_python
from datafusion_tadoc._living import Living
from datafusion_tadoc._notices import Notice, warn_of
from datafusion_tadoc._output import CORPUS, check_written, one_file
from datafusion_tadoc._progress import Progress
from datafusion_tadoc._sql_text import external_table, identifier, quoted, setting

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = [
    "Connection", "Error", "Living", "Notice", "Result", "__version__", "connect", "device_arrays", "ingest", "open", "read_gsst",
    "write_gsst",
]  # fmt: skip

#: Rows that `show` and notebooks print.
SHOWN_ROWS = 40
#: Characters of a cell that they print.
SHOWN_WIDTH = 120

Parameters = Sequence[Any] | Mapping[str, Any]
Location = str | os.PathLike[str]


class Result:
    """The rows of a statement.

    A query runs each time that its rows are asked for, and not before. Other statements have run
    when the result exists. Any library that reads Arrow takes a result as it is
    (``pyarrow.table(result)``, ``polars.DataFrame(result)``, ``duckdb.sql("FROM result")``), and
    reads its rows as they come.

    >>> numbers = connect().sql("SELECT * FROM (VALUES (1, 'one'), (2, NULL)) AS t (number, name)")
    >>> numbers
    <Result: number Int64, name Utf8>
    >>> numbers.rows()
    [(1, 'one'), (2, None)]
    """

    def __init__(self, statement: _native.Statement | _native.Gathered) -> None:
        self._statement = statement

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

    def rows(self, limit: int | None = None) -> list[tuple[Any, ...]]:
        """Returns the rows, at most `limit`, as tuples of Python values.

        >>> connect().sql("SELECT [1, 2] AS list, DATE '2026-11-24' AS day").rows()
        [([1, 2], datetime.date(2026, 11, 24))]
        """
        return self._statement.gather(limit).rows()

    def arrow(self) -> pyarrow.Table:
        """Returns the rows as a table of pyarrow.

        >>> connect().sql("SELECT 1 AS one, 'be' AS word").arrow().to_pydict()
        {'one': [1], 'word': ['be']}
        """
        import pyarrow

        return pyarrow.table(self._statement.gather())

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

    def __iter__(self) -> Any:
        return iter(self.rows())

    def __repr__(self) -> str:
        return f"<Result: {', '.join(f'{name} {kind}' for name, kind in self.schema)}>"

    def _repr_html_(self) -> str:
        preview = self._statement.preview(SHOWN_ROWS, SHOWN_WIDTH)
        names, rows = preview.cells()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        more = f"<p>the first {SHOWN_ROWS} rows</p>" if preview.has_more else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._statement.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._statement.__arrow_c_schema__()

    def __datafusion_table_provider__(self, session: Any) -> Any:
        """Makes the result a table of a session of the package ``datafusion``:
        ``ctx.register_table("t", result)``. See :mod:`datafusion_tadoc.datafusion`."""
        if isinstance(self._statement, _native.Statement):
            return self._statement.__datafusion_table_provider__(session)
        raise Error("only the rows of a query can be a table of another DataFusion; take these with arrow()")


class Connection:
    """A session: tables, settings, and corpora that stay open between statements.

    Threads may share a connection. Python runs on while a statement works, and Ctrl-C ends the
    statement. Methods such as :meth:`search` call the table function of their name; the options of
    the function are keywords.

    >>> _ = ingest([("a.txt", "To be or not to be")], "session.tadoc", overwrite=True)
    >>> con = connect()
    >>> con.term_count("session.tadoc", "to", fold=True).rows()
    [(0, 'a.txt', 2)]
    """

    def __init__(self, session: _native.Session) -> None:
        self._open: _native.Session | None = session

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
        """
        if named and params is not None:
            raise TypeError("give parameters in params or as keywords, not both")
        statement = self._session.statement(query, named or params)
        warn_of(statement.notices)
        return Result(statement)

    def register(self, name: str, rows: Any) -> None:
        """Makes an Arrow object a table: a frame, a table, a stream, another result.

        The rows are kept in memory. A table of the same name is replaced.

        >>> con = connect()
        >>> con.register("numbers", con.sql("SELECT 1 AS n UNION ALL SELECT 2"))
        >>> con.sql("SELECT sum(n) FROM numbers").rows()
        [(3,)]
        """
        self._session.register(name, rows)

    def unregister(self, name: str) -> bool:
        """Removes a table, and returns True if there was one.

        >>> con = connect()
        >>> con.register("numbers", con.sql("SELECT 1 AS n"))
        >>> con.unregister("numbers"), con.unregister("numbers")
        (True, False)
        """
        return self._session.unregister(name)

    def documents(self, corpus: Location, **options: Any) -> Result:
        """Returns the documents of a corpus: doc_id, path, bytes, words, text, content.

        >>> _ = ingest([("a.txt", "to be"), ("b.txt", "to do")], "all.tadoc", overwrite=True)
        >>> [row[:5] for row in connect().documents("all.tadoc")]
        [(0, 'a.txt', 5, 2, 'to be'), (1, 'b.txt', 5, 2, 'to do')]
        """
        return self._call("documents", [corpus], options)

    def word_count(self, corpus: Location, **options: Any) -> Result:
        """Returns how often each word occurs.

        >>> _ = ingest([("a", "To be or not to be")], "words.tadoc", overwrite=True)
        >>> connect().word_count("words.tadoc", fold=True).rows()
        [('be', 2), ('not', 1), ('or', 1), ('to', 2)]
        """
        return self._call("word_count", [corpus], options)

    def search(self, corpus: Location, query: str, **options: Any) -> Result:
        """Returns the places of a query, such as ``'"power loss" NOT test'``.

        >>> _ = ingest([("a.txt", "to be or not to be")], "places.tadoc", overwrite=True)
        >>> places = connect().search("places.tadoc", '"to be"')
        >>> places.columns
        ['doc_id', 'path', 'byte_offset', 'byte_len', 'word_index', 'line', 'column']
        >>> places.rows()
        [(0, 'a.txt', 0, 5, 0, 1, 1), (0, 'a.txt', 13, 5, 4, 1, 14)]
        """
        return self._call("search", [corpus, query], options)

    def term_count(self, corpus: Location, query: str, **options: Any) -> Result:
        """Returns how often a query occurs in each document.

        >>> _ = ingest([("a.txt", "To be or not to be"), ("b.txt", "do")], "terms.tadoc", overwrite=True)
        >>> connect().term_count("terms.tadoc", "to", fold=True).rows()
        [(0, 'a.txt', 2)]
        """
        return self._call("term_count", [corpus, query], options)

    def kwic(self, corpus: Location, query: str, **options: Any) -> Result:
        """Returns the places of a query with the words around them.

        >>> _ = ingest([("a.txt", "to be or not to be")], "contexts.tadoc", overwrite=True)
        >>> [row[2:5] for row in connect().kwic("contexts.tadoc", "not", width=1)]
        [('or ', 'not', ' to')]
        """
        return self._call("kwic", [corpus, query], options)

    def rank(self, corpus: Location, query: str, **options: Any) -> Result:
        """Returns the documents that fit a query best, by BM25.

        >>> texts = [("a.txt", "tea and tea"), ("b.txt", "tea and cake"), ("c.txt", "cake")]
        >>> _ = ingest(texts, "ranked.tadoc", overwrite=True)
        >>> [path for _, path, score in connect().rank("ranked.tadoc", "tea", top=2)]
        ['a.txt', 'b.txt']
        """
        return self._call("rank", [corpus, query], options)

    def grep(self, corpus: Location, pattern: str, **options: Any) -> Result:
        """Returns the lines that match a regular expression.

        >>> _ = ingest([("a.log", "start\\nerror 7\\nend\\n")], "lines.tadoc", overwrite=True)
        >>> lines = connect().grep("lines.tadoc", "error [0-9]")
        >>> [(row[lines.columns.index("line_number")], row[lines.columns.index("line")]) for row in lines]
        [(2, 'error 7')]
        """
        return self._call("grep", [corpus, pattern], options)

    def extract(
        self,
        corpus: Location,
        doc_id: int,
        byte_offset: int = 0,
        byte_len: int | None = None,
        **options: Any,
    ) -> Result:
        """Returns a document, or a part of it: `byte_len` bytes, or the rest, from `byte_offset` on.

        Without `byte_len` the corpus is asked for the length at once.

        >>> _ = ingest([("a.txt", "to be or not to be")], "parts.tadoc", overwrite=True)
        >>> con = connect()
        >>> con.extract("parts.tadoc", 0, byte_offset=9, byte_len=3).rows()
        [('not',)]
        >>> con.extract("parts.tadoc", 0).rows()
        [('to be or not to be',)]
        """
        if byte_len is None:
            lengths = "SELECT bytes FROM documents($1, version => $2) WHERE doc_id = $3"
            rows = self.sql(lengths, [corpus, options.get("version"), doc_id]).rows()
            # Without a row there is no such document, and `extract` says so.
            byte_len = rows[0][0] if rows else 0
        return self._call("extract", [corpus, doc_id, byte_offset, byte_len], options)

    def context(self, corpus: Location, doc_id: int, **options: Any) -> Result:
        """Returns a document with those around it that have its path, such as the lines around a line.

        >>> _ = ingest([("a.log", text) for text in ["one", "two", "three", "four"]], "around.tadoc", overwrite=True)
        >>> around = connect().context("around.tadoc", 1, before=1, after=1)
        >>> sorted((row[around.columns.index("distance")], row[around.columns.index("text")]) for row in around)
        [(-1, 'one'), (0, 'two'), (1, 'three')]
        """
        return self._call("context", [corpus, doc_id], options)

    def collocates(self, corpus: Location, query: str, **options: Any) -> Result:
        """Returns the words near the places of a query, with a measure of how much more often they are
        there than elsewhere.

        >>> _ = ingest([("a", "strong tea and strong coffee")], "near.tadoc", overwrite=True)
        >>> near = connect().collocates("near.tadoc", "strong", left=0, right=1)
        >>> sorted((row[near.columns.index("word")], row[near.columns.index("count")]) for row in near)
        [('coffee', 1), ('tea', 1)]
        """
        return self._call("collocates", [corpus, query], options)

    def keyness(self, corpus: Location, reference: Location, **options: Any) -> Result:
        """Returns the words that tell a corpus from another, with log-likelihood and log ratio.

        >>> _ = ingest([("a", "tea tea tea cup")], "tea.tadoc", overwrite=True)
        >>> _ = ingest([("b", "cup cup mug")], "cups.tadoc", overwrite=True)
        >>> sorted(row[:3] for row in connect().keyness("tea.tadoc", "cups.tadoc"))
        [('cup', 1, 2), ('mug', 0, 1), ('tea', 3, 0)]
        """
        return self._call("keyness", [corpus, reference], options)

    def dispersion(self, corpus: Location, query: str, **options: Any) -> Result:
        """Returns how evenly a query is spread over the documents.

        >>> _ = ingest([("a", "tea"), ("b", "tea"), ("c", "cup")], "spread.tadoc", overwrite=True)
        >>> spread = connect().dispersion("spread.tadoc", "tea")
        >>> [row[spread.columns.index("range")] for row in spread]
        [2]
        """
        return self._call("dispersion", [corpus, query], options)

    def sequence_count(self, corpus: Location, n: int = 3, **options: Any) -> Result:
        """Returns how often each sequence of `n` words occurs.

        >>> _ = ingest([("a", "to be or not to be")], "sequences.tadoc", overwrite=True)
        >>> connect().sequence_count("sequences.tadoc", 2).rows()
        [('be or', 1), ('not to', 1), ('or not', 1), ('to be', 2)]
        """
        return self._call("sequence_count", [corpus, n], options)

    def cooccurrence(self, corpus: Location, **options: Any) -> Result:
        """Returns how often pairs of words stand near each other.

        >>> _ = ingest([("a", "strong tea, strong tea")], "pairs_of_words.tadoc", overwrite=True)
        >>> connect().cooccurrence("pairs_of_words.tadoc", window=2).rows()
        [('strong', 'tea', 3)]
        """
        return self._call("cooccurrence", [corpus], options)

    def repeated_phrases(self, corpus: Location, **options: Any) -> Result:
        """Returns the longest phrases that occur more than once.

        >>> _ = ingest([("a", "to be or not"), ("b", "To do, to be or so")], "phrases.tadoc", overwrite=True)
        >>> connect().repeated_phrases("phrases.tadoc", min_words=2).rows()
        [('to be or', 3, 2)]
        """
        return self._call("repeated_phrases", [corpus], options)

    def near_duplicates(self, corpus: Location, **options: Any) -> Result:
        """Returns pairs of documents that have most of their sequences in common.

        >>> texts = [("a", "a b c d e f"), ("b", "a b c d e g"), ("c", "x y z u v w")]
        >>> _ = ingest(texts, "alike.tadoc", overwrite=True)
        >>> [(row[1], row[3]) for row in connect().near_duplicates("alike.tadoc", threshold=0.5, n=2)]
        [('a', 'b')]
        """
        return self._call("near_duplicates", [corpus], options)

    def log_templates(self, corpus: Location, **options: Any) -> Result:
        """Returns lines that differ only in their variable parts, counted together.

        >>> lines = [("1", "job 7 took 12 ms"), ("2", "job 8 took 950 ms")]
        >>> _ = ingest(lines, "jobs.tadoc", overwrite=True)
        >>> [row[:2] for row in connect().log_templates("jobs.tadoc")]
        [('job <*> took <*> ms', 2)]
        """
        return self._call("log_templates", [corpus], options)

    def repeated_spans(self, corpus: Location, **options: Any) -> Result:
        """Returns the places of text that stands at an earlier place, too.

        >>> _ = ingest([("a", "to be or not"), ("b", "so, to be or so")], "spans.tadoc", overwrite=True)
        >>> [row[1:4] for row in connect().repeated_spans("spans.tadoc", min_words=3)]
        [('a', 0, 8), ('b', 4, 8)]
        """
        return self._call("repeated_spans", [corpus], options)

    def overlap(self, corpus: Location, texts: str, **options: Any) -> Result:
        """Returns how much of each text of a table, a file or a corpus another corpus has.

        >>> _ = ingest([("a", "to be or not"), ("b", "be so")], "train.tadoc", overwrite=True)
        >>> _ = ingest([("q", "to be or so")], "test.tadoc", overwrite=True)
        >>> [row[1:4] for row in connect().overlap("train.tadoc", "test.tadoc", n=2)]
        [(3, 2, 0.6666666666666666)]
        """
        return self._call("overlap", [corpus, texts], options)

    def inverted_index(self, corpus: Location, **options: Any) -> Result:
        """Returns the documents of each word.

        >>> _ = ingest([("a", "to be"), ("b", "to do")], "index.tadoc", overwrite=True)
        >>> connect().inverted_index("index.tadoc").rows()
        [('be', 1, [0]), ('do', 1, [1]), ('to', 2, [0, 1])]
        """
        return self._call("inverted_index", [corpus], options)

    def term_vector(self, corpus: Location, **options: Any) -> Result:
        """Returns the counts of the words of each document.

        >>> _ = ingest([("a", "to be or not to be")], "vectors.tadoc", overwrite=True)
        >>> sorted(connect().term_vector("vectors.tadoc"))
        [(0, 'be', 2), (0, 'not', 1), (0, 'or', 1), (0, 'to', 2)]
        """
        return self._call("term_vector", [corpus], options)

    def tfidf(self, corpus: Location, **options: Any) -> Result:
        """Returns the words of each document, weighted by how rare they are elsewhere.

        >>> _ = ingest([("a", "to be"), ("b", "to do")], "weights.tadoc", overwrite=True)
        >>> sorted(row[:2] for row in connect().tfidf("weights.tadoc", top=1))
        [(0, 'be'), (1, 'do')]
        """
        return self._call("tfidf", [corpus], options)

    def tokens(self, corpus: Location, **options: Any) -> Result:
        """Returns the words of each document in order.

        >>> _ = ingest([("a", "to be")], "tokens.tadoc", overwrite=True)
        >>> tokens = connect().tokens("tokens.tadoc")
        >>> tokens.columns
        ['doc_id', 'word_index', 'word_id', 'word']
        >>> tokens.rows()
        [(0, 0, 1, 'to'), (0, 1, 0, 'be')]
        """
        return self._call("tokens", [corpus], options)

    def corpus_info(self, corpus: Location, **options: Any) -> Result:
        """Returns facts about the files of a corpus.

        >>> _ = ingest([("a", "to be")], "facts.tadoc", overwrite=True)
        >>> facts = dict(connect().corpus_info("facts.tadoc").rows())
        >>> facts["documents"], facts["words"]
        ('1', '2')
        """
        return self._call("corpus_info", [corpus], options)

    def _call(self, function: str, arguments: list[Any], options: dict[str, Any]) -> Result:
        for name in options:
            if not name.isidentifier():
                raise TypeError(f"{name!r} is no name of an argument")
        values = [*arguments, *options.values()]
        places = [f"${at + 1}" for at in range(len(arguments))]
        places += [f"{name} => ${at + len(arguments) + 1}" for at, name in enumerate(options)]
        return self.sql(f"SELECT * FROM {function}({', '.join(places)})", values)

    def _feed(
        self, source: Any, statement: str, counter: Callable[[int, int], None] | None = None
    ) -> _native.Gathered:
        """Runs a statement that reads the rows of `source` from the table ``{rows}``.

        `counter` gets the number of documents and of their bytes, as they come.
        """
        name = f"tadoc_rows_{uuid.uuid4().hex}"
        return self._session.feed(name, source, statement.replace("{rows}", name), counter)


def connect(
    memory_limit: int | str | None = None,
    device: str | None = None,
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Connection:
    """Opens a session.

    `memory_limit` is a number of bytes or a text such as ``'4GiB'``, for the whole process.
    `device` is ``'auto'``, ``'cpu'`` or ``'gpu'``. `threads` is the number of threads that share a
    statement. `settings` are those of ``SET``.

    >>> connect(threads=1, settings={"tadoc.max_hits": 10}).sql("SHOW tadoc.max_hits").rows()
    [('tadoc.max_hits', '10')]
    """
    all_settings = {name: setting(value) for name, value in (settings or {}).items()}
    if device is not None:
        all_settings["tadoc.device"] = device
    if threads is not None:
        all_settings["datafusion.execution.target_partitions"] = str(threads)
    if isinstance(memory_limit, str):
        memory_limit = _native.size(memory_limit)
    return Connection(_native.Session(memory_limit, list(all_settings.items())))


def ingest(
    source: Any,
    out: Location,
    *,
    documents: str | None = None,
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
    - an Arrow object with a column ``text`` or ``content``, perhaps a column ``path``, and any
      others, which become user columns,
    - a path, a URL or a list of them: files, folders and globs, as ``tadoc ingest`` takes them.
      `documents` says what becomes a document: ``'files'``, ``'lines'``, ``'jsonl:FIELD'``,
      ``'csv:COLUMN'``, ``'parquet:COLUMN'`` or ``'arrow:COLUMN'``.


    Pairs and Arrow objects become one file, whose name ends with ``.tadoc``. A source without documents is
    an error, unless `allow_empty` is true.

    Nothing is left behind if it fails. `progress` shows a line on a terminal while it works, and a
    summary on standard error.

    >>> ingest([("a.txt", "to be"), ("b.txt", b"or not")], "pairs.tadoc", overwrite=True)
    'pairs.tadoc'
    """
    paths = _paths(source)
    if paths is not None:
        options = {"documents": documents, "tokenizer": tokenizer, "layout": layout}
        options["block-size"] = block_size
        flags = [f"--{name}={value}" for name, value in options.items() if value is not None]
        flags += ["--force"] if overwrite else []
        flags += ["--allow-empty"] if allow_empty else []
        flags += [] if progress else ["--quiet"]
        run_command("ingest", *flags, "--output", os.fspath(out), "--", *paths, progress=progress)
        check_written(out)
        return out
    if documents is not None:
        raise TypeError("documents is for files; rows and pairs are documents already")
    options = {"overwrite": overwrite or None, "tokenizer": tokenizer, "layout": layout}
    options |= {"allow_empty": allow_empty or None, "block_bytes": block_size}
    listed = ", ".join(
        f"'tadoc.{name}' {quoted(setting(value))}" for name, value in options.items() if value is not None
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
    if not (hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")):
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
        con._feed(source, f"COPY (SELECT * FROM {{rows}}) TO {target} STORED AS GSST OPTIONS ({listed})")
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
    con.sql(f"CREATE EXTERNAL TABLE {name} STORED AS GSST LOCATION {quoted(os.fspath(location))}")
    try:
        # The plan keeps the table.
        return con.sql(f"SELECT {', '.join(map(identifier, columns)) if columns else '*'} FROM {name}")
    finally:
        con.unregister(name)


def device_arrays(location: Location, column: str, device: int = 0) -> list[_native.DeviceArray]:
    """Returns the text of a GSST column on a GPU, one array for each row group of a local file.

    Each array has ``__arrow_c_device_array__``, so libraries of Arrow's device interface take it
    without a copy (``pyarrow.Array._import_from_c_device_capsule``, ``cudf``). Only the codes travel
    to the device. A call decodes the row group, and the taker owns the memory. Without a device it
    is an :class:`Error`; :func:`read_gsst` decodes on the cores.

    >>> arrays = device_arrays("names.parquet", "url")  # doctest: +SKIP
    >>> [len(array) for array in arrays]  # doctest: +SKIP
    """
    if not hasattr(_native, "device_arrays"):
        raise Error("this build has no devices; read_gsst decodes on the cores")
    return _native.device_arrays(os.fspath(location), column, device)


def open(
    location: Location,
    *,
    create: bool = False,
    columns: Mapping[str, str] | None = None,
    connection: Connection | None = None,
) -> Living:
    """Opens a living corpus. With `create` it begins one where there is nothing.

    `columns` names user columns that rows may have, with their types in SQL.

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
    table = f"living_{uuid.uuid4().hex}"
    options = {"create": "true"} if create else {}
    declared = ", ".join(f"{identifier(name)} {kind}" for name, kind in (columns or {}).items())
    declared = f" ({declared})" if declared else ""
    with errors_in_python():
        con.sql(external_table(table, declared, location, options))
    return Living(location, con, table, declared)


def _paths(source: Any) -> list[str] | None:
    """Returns the paths that `source` names, or None if it is something else."""
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if isinstance(source, (list, tuple)) and source and all(isinstance(p, (str, os.PathLike)) for p in source):
        return [os.fspath(path) for path in source]
    return None
