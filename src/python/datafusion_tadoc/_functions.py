"""The table functions of SQL as methods.

Options are keywords with the names and defaults of SQL, of which ``tests/python/test_types.py`` makes sure.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from datafusion_tadoc._result import Result

Location = str | os.PathLike[str]
#: A fold of words: True is ``'case'``, or a text such as ``'accents,stem:german'``.
Fold = bool | str
Measure = Literal["logdice", "mi", "t", "ll", "mi3", "dice", "logratio", "deltap"]
Blanks = Literal["collapse", "keep"]


class Functions(ABC):
    """The table functions, for a class that runs statements.

    >>> _ = ingest([("a.txt", "To be or not to be")], "methods.tadoc", overwrite=True)
    >>> connect().term_count("methods.tadoc", "to", fold=True).rows()
    [(0, 'a.txt', 2)]
    >>> connect().term_count("methods.tadoc", "to", flod=True)
    Traceback (most recent call last):
    TypeError: Functions.term_count() got an unexpected keyword argument 'flod'
    """

    @abstractmethod
    def _sql(self, query: str, values: list[Any]) -> Result:
        """Runs a statement of this package."""

    @abstractmethod
    def _with_rows(self, rows: Any, call: Callable[[str], Result]) -> Result:
        """Calls a function with the name of a table of `rows`, which is there as long as its result."""

    def _call(self, function: str, arguments: dict[str, Any]) -> Result:
        """Calls a table function with the arguments of its method, those that are keywords only by name."""
        places, values = [], []
        for name, parameter in signature(getattr(Functions, function)).parameters.items():
            if name != "self":
                values.append(arguments[name])
                is_keyword = parameter.kind is Parameter.KEYWORD_ONLY
                places.append(f"{name} => ${len(values)}" if is_keyword else f"${len(values)}")
        return self._sql(f"SELECT * FROM {function}({', '.join(places)})", values)

    def documents(self, corpus: Location, *, version: int | None = None, where: str | None = None) -> Result:
        """Returns the documents of a corpus: doc_id, path, bytes, words, text, content.

        >>> _ = ingest([("a.txt", "to be"), ("b.txt", "to do")], "all.tadoc", overwrite=True)
        >>> [row[:5] for row in connect().documents("all.tadoc")]
        [(0, 'a.txt', 5, 2, 'to be'), (1, 'b.txt', 5, 2, 'to do')]
        """
        return self._call("documents", locals())

    def word_count(
        self, corpus: Location, *, fold: Fold = False, version: int | None = None, where: str | None = None
    ) -> Result:
        """Returns how often each word occurs.

        >>> _ = ingest([("a", "To be or not to be")], "words.tadoc", overwrite=True)
        >>> connect().word_count("words.tadoc", fold=True).rows()
        [('be', 2), ('not', 1), ('or', 1), ('to', 2)]
        """
        return self._call("word_count", locals())

    def search(
        self,
        corpus: Location,
        query: str,
        *,
        doc_id: int | None = None,
        fold: Fold = False,
        exact: bool = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns the places of a query, such as ``'"power loss" NOT test'``.

        >>> _ = ingest([("a.txt", "to be or not to be")], "places.tadoc", overwrite=True)
        >>> places = connect().search("places.tadoc", '"to be"')
        >>> places.columns
        ['doc_id', 'path', 'byte_offset', 'byte_len', 'word_index', 'line', 'column']
        >>> places.rows()
        [(0, 'a.txt', 0, 5, 0, 1, 1), (0, 'a.txt', 13, 5, 4, 1, 14)]
        """
        return self._call("search", locals())

    def term_count(
        self,
        corpus: Location,
        query: str,
        *,
        fold: Fold = False,
        exact: bool = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns how often a query occurs in each document.

        >>> _ = ingest([("a.txt", "To be or not to be"), ("b.txt", "do")], "terms.tadoc", overwrite=True)
        >>> connect().term_count("terms.tadoc", "to", fold=True).rows()
        [(0, 'a.txt', 2)]
        """
        return self._call("term_count", locals())

    def kwic(
        self,
        corpus: Location,
        query: str,
        *,
        width: int = 8,
        fold: Fold = False,
        blanks: Blanks = "collapse",
        exact: bool = False,
        version: int | None = None,
        where: str | None = None,
        sample: int | None = None,
        seed: int = 0,
    ) -> Result:
        """Returns the places of a query with the words around them.

        >>> _ = ingest([("a.txt", "to be or not to be")], "contexts.tadoc", overwrite=True)
        >>> [row[2:5] for row in connect().kwic("contexts.tadoc", "not", width=1)]
        [('or ', 'not', ' to')]
        """
        return self._call("kwic", locals())

    def rank(
        self,
        corpus: Location,
        query: str,
        *,
        top: int = 10,
        k1: float = 1.2,
        b: float = 0.75,
        fold: Fold = False,
        exact: bool = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns the documents that fit a query best, by BM25.

        >>> texts = [("a.txt", "tea and tea"), ("b.txt", "tea and cake"), ("c.txt", "cake")]
        >>> _ = ingest(texts, "ranked.tadoc", overwrite=True)
        >>> [path for _, path, score in connect().rank("ranked.tadoc", "tea", top=2)]
        ['a.txt', 'b.txt']
        """
        return self._call("rank", locals())

    def grep(
        self,
        corpus: Location,
        pattern: str,
        *,
        context: int = 0,
        fold: Fold = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns the lines that match a regular expression.

        >>> _ = ingest([("a.log", "start\\nerror 7\\nend\\n")], "lines.tadoc", overwrite=True)
        >>> lines = connect().grep("lines.tadoc", "error [0-9]")
        >>> [(row[lines.columns.index("line_number")], row[lines.columns.index("line")]) for row in lines]
        [(2, 'error 7')]
        """
        return self._call("grep", locals())

    def extract(
        self,
        corpus: Location,
        doc_id: int,
        byte_offset: int = 0,
        byte_len: int | None = None,
        *,
        version: int | None = None,
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
            rows = self._sql(lengths, [corpus, version, doc_id]).rows()
            # Without a row there is no such document, and `extract` says so.
            byte_len = rows[0][0] if rows else 0
        return self._call("extract", locals())

    def context(
        self, corpus: Location, doc_id: int, *, before: int = 2, after: int = 2, version: int | None = None
    ) -> Result:
        """Returns a document with those around it that have its path, such as the lines around a line.

        >>> _ = ingest([("a.log", text) for text in ["one", "two", "three", "four"]], "around.tadoc", overwrite=True)
        >>> around = connect().context("around.tadoc", 1, before=1, after=1)
        >>> sorted((row[around.columns.index("distance")], row[around.columns.index("text")]) for row in around)
        [(-1, 'one'), (0, 'two'), (1, 'three')]
        """
        return self._call("context", locals())

    def collocates(
        self,
        corpus: Location,
        query: str,
        *,
        left: int = 5,
        right: int = 5,
        measure: Measure = "logdice",
        min_count: int = 1,
        fold: Fold = False,
        exact: bool = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns the words near the places of a query, with a measure of how much more often they are
        there than elsewhere.

        >>> _ = ingest([("a", "strong tea and strong coffee")], "near.tadoc", overwrite=True)
        >>> near = connect().collocates("near.tadoc", "strong", left=0, right=1)
        >>> sorted((row[near.columns.index("word")], row[near.columns.index("count")]) for row in near)
        [('coffee', 1), ('tea', 1)]
        """
        return self._call("collocates", locals())

    def keyness(
        self,
        corpus: Location,
        reference: Location,
        *,
        min_count: int = 1,
        fold: Fold = False,
        where: str | None = None,
        reference_where: str | None = None,
    ) -> Result:
        """Returns the words that tell a corpus from another, with log-likelihood and log ratio.

        >>> _ = ingest([("a", "tea tea tea cup")], "tea.tadoc", overwrite=True)
        >>> _ = ingest([("b", "cup cup mug")], "cups.tadoc", overwrite=True)
        >>> sorted(row[:3] for row in connect().keyness("tea.tadoc", "cups.tadoc"))
        [('cup', 1, 2), ('mug', 0, 1), ('tea', 3, 0)]
        """
        return self._call("keyness", locals())

    def dispersion(
        self,
        corpus: Location,
        query: str,
        *,
        parts: int | None = None,
        fold: Fold = False,
        exact: bool = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns how evenly a query is spread over the documents.

        >>> _ = ingest([("a", "tea"), ("b", "tea"), ("c", "cup")], "spread.tadoc", overwrite=True)
        >>> spread = connect().dispersion("spread.tadoc", "tea")
        >>> [row[spread.columns.index("range")] for row in spread]
        [2]
        """
        return self._call("dispersion", locals())

    def sequence_count(
        self,
        corpus: Location,
        n: int = 3,
        *,
        by_doc: bool = False,
        fold: Fold = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns how often each sequence of `n` words occurs.

        >>> _ = ingest([("a", "to be or not to be")], "sequences.tadoc", overwrite=True)
        >>> connect().sequence_count("sequences.tadoc", 2).rows()
        [('be or', 1), ('not to', 1), ('or not', 1), ('to be', 2)]
        """
        return self._call("sequence_count", locals())

    def cooccurrence(
        self,
        corpus: Location,
        *,
        window: int = 5,
        min_count: int = 1,
        fold: Fold = False,
        word: str | None = None,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns how often pairs of words stand near each other.

        >>> _ = ingest([("a", "strong tea, strong tea")], "pairs_of_words.tadoc", overwrite=True)
        >>> connect().cooccurrence("pairs_of_words.tadoc", window=2).rows()
        [('strong', 'tea', 3)]
        """
        return self._call("cooccurrence", locals())

    def repeated_phrases(
        self,
        corpus: Location,
        *,
        min_words: int = 8,
        min_count: int = 2,
        fold: Fold = False,
        max_words: int = 256,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns the longest phrases that occur more than once.

        >>> _ = ingest([("a", "to be or not"), ("b", "To do, to be or so")], "phrases.tadoc", overwrite=True)
        >>> connect().repeated_phrases("phrases.tadoc", min_words=2).rows()
        [('to be or', 3, 2)]
        """
        return self._call("repeated_phrases", locals())

    def near_duplicates(
        self,
        corpus: Location,
        *,
        threshold: float = 0.8,
        n: int = 5,
        fold: Fold = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns pairs of documents that have most of their sequences in common.

        >>> texts = [("a", "a b c d e f"), ("b", "a b c d e g"), ("c", "x y z u v w")]
        >>> _ = ingest(texts, "alike.tadoc", overwrite=True)
        >>> [(row[1], row[3]) for row in connect().near_duplicates("alike.tadoc", threshold=0.5, n=2)]
        [('a', 'b')]
        """
        return self._call("near_duplicates", locals())

    def near_duplicate_clusters(
        self,
        corpus: Location,
        *,
        threshold: float = 0.8,
        n: int = 5,
        fold: Fold = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns documents that have near duplicates, with the one of each cluster to keep.

        >>> texts = [("a", "a b c d e f"), ("b", "a b c d e g"), ("c", "x y z u v w")]
        >>> _ = ingest(texts, "clusters.tadoc", overwrite=True)
        >>> con = connect()
        >>> [(row[1], row[4]) for row in con.near_duplicate_clusters("clusters.tadoc", threshold=0.5, n=2)]
        [('a', True), ('b', False)]
        """
        return self._call("near_duplicate_clusters", locals())

    def log_templates(
        self,
        corpus: Location,
        *,
        similarity: float = 0.4,
        depth: int = 4,
        by_doc: bool = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns lines that differ only in their variable parts, counted together.

        >>> lines = [("1", "job 7 took 12 ms"), ("2", "job 8 took 950 ms")]
        >>> _ = ingest(lines, "jobs.tadoc", overwrite=True)
        >>> [row[:2] for row in connect().log_templates("jobs.tadoc")]
        [('job <*> took <*> ms', 2)]
        """
        return self._call("log_templates", locals())

    def repeated_spans(
        self, corpus: Location, *, min_words: int = 50, version: int | None = None, where: str | None = None
    ) -> Result:
        """Returns the places of text that stands at an earlier place, too.

        >>> _ = ingest([("a", "to be or not"), ("b", "so, to be or so")], "spans.tadoc", overwrite=True)
        >>> [row[1:4] for row in connect().repeated_spans("spans.tadoc", min_words=3)]
        [('a', 0, 8), ('b', 4, 8)]
        """
        return self._call("repeated_spans", locals())

    def overlap(
        self,
        corpus: Location,
        texts: Location | Any,
        *,
        n: int = 13,
        fold: Fold = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns how much of each text of a table, a file or a corpus another corpus has.

        The texts are also a list of them, or rows as :meth:`Connection.register` takes them, with a column `text`
        and perhaps a column `id`.

        >>> _ = ingest([("a", "to be or not"), ("b", "be so")], "train.tadoc", overwrite=True)
        >>> _ = ingest([("q", "to be or so")], "test.tadoc", overwrite=True)
        >>> [row[1:4] for row in connect().overlap("train.tadoc", "test.tadoc", n=2)]
        [(3, 2, 0.6666666666666666)]
        >>> [row[0:4:3] for row in connect().overlap("train.tadoc", ["to be or so", "be not"], n=2)]
        [('0', 0.6666666666666666), ('1', 0.0)]
        """
        arguments = {"corpus": corpus, "n": n, "fold": fold, "version": version, "where": where}

        def call(name: Location) -> Result:
            return self._call("overlap", {**arguments, "texts": name})

        if isinstance(texts, (str, os.PathLike)):
            return call(texts)
        is_list = isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts)
        return self._with_rows({"text": list(texts)} if is_list else texts, call)

    def inverted_index(
        self, corpus: Location, *, fold: Fold = False, version: int | None = None, where: str | None = None
    ) -> Result:
        """Returns the documents of each word.

        >>> _ = ingest([("a", "to be"), ("b", "to do")], "index.tadoc", overwrite=True)
        >>> connect().inverted_index("index.tadoc").rows()
        [('be', 1, [0]), ('do', 1, [1]), ('to', 2, [0, 1])]
        """
        return self._call("inverted_index", locals())

    def term_vector(
        self,
        corpus: Location,
        *,
        top: int | None = None,
        fold: Fold = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns the counts of the words of each document.

        >>> _ = ingest([("a", "to be or not to be")], "vectors.tadoc", overwrite=True)
        >>> sorted(connect().term_vector("vectors.tadoc"))
        [(0, 'be', 2), (0, 'not', 1), (0, 'or', 1), (0, 'to', 2)]
        """
        return self._call("term_vector", locals())

    def tfidf(
        self,
        corpus: Location,
        *,
        top: int | None = None,
        fold: Fold = False,
        version: int | None = None,
        where: str | None = None,
    ) -> Result:
        """Returns the words of each document, weighted by how rare they are elsewhere.

        >>> _ = ingest([("a", "to be"), ("b", "to do")], "weights.tadoc", overwrite=True)
        >>> sorted(row[:2] for row in connect().tfidf("weights.tadoc", top=1))
        [(0, 'be'), (1, 'do')]
        """
        return self._call("tfidf", locals())

    def tokens(
        self, corpus: Location, *, fold: Fold = False, version: int | None = None, where: str | None = None
    ) -> Result:
        """Returns the words of each document in order.

        >>> _ = ingest([("a", "to be")], "tokens.tadoc", overwrite=True)
        >>> tokens = connect().tokens("tokens.tadoc")
        >>> tokens.columns
        ['doc_id', 'word_index', 'word_id', 'word']
        >>> tokens.rows()
        [(0, 0, 1, 'to'), (0, 1, 0, 'be')]
        """
        return self._call("tokens", locals())

    def corpus_info(self, corpus: Location, *, version: int | None = None) -> Result:
        """Returns facts about the files of a corpus.

        >>> _ = ingest([("a", "to be")], "facts.tadoc", overwrite=True)
        >>> facts = dict(connect().corpus_info("facts.tadoc").rows())
        >>> facts["documents"], facts["words"]
        ('1', '2')
        """
        return self._call("corpus_info", locals())

    def word_sort(
        self, corpus: Location, *, fold: Fold = False, version: int | None = None, where: str | None = None
    ) -> Result:
        """Returns how often each word occurs, in byte order of the words.

        >>> _ = ingest([("a", "to be or not to be")], "sorted.tadoc", overwrite=True)
        >>> connect().word_sort("sorted.tadoc").rows()
        [('be', 2), ('not', 1), ('or', 1), ('to', 2)]
        """
        return self._call("word_sort", locals())

    def doc_term_matrix(
        self, corpus: Location, *, fold: Fold = False, version: int | None = None, where: str | None = None
    ) -> Result:
        """Returns a sparse matrix of documents and words, one row for each document.

        >>> _ = ingest([("a", "to be"), ("b", "to do")], "matrix.tadoc", overwrite=True)
        >>> len(connect().doc_term_matrix("matrix.tadoc"))
        2
        """
        return self._call("doc_term_matrix", locals())

    def ranked_inverted_index(
        self, corpus: Location, n: int = 3, *, fold: Fold = False, version: int | None = None, where: str | None = None
    ) -> Result:
        """Returns the documents of each sequence of `n` words, those that repeat it most first.

        >>> _ = ingest([("a", "to be or to be"), ("b", "to be")], "ranked_index.tadoc", overwrite=True)
        >>> len(connect().ranked_inverted_index("ranked_index.tadoc", 2))
        4
        """
        return self._call("ranked_inverted_index", locals())

    def corpus_verify(self, corpus: Location, *, version: int | None = None) -> Result:
        """Checks every checksum of a corpus, and decodes every document.

        >>> _ = ingest([("a", "to be")], "checked.tadoc", overwrite=True)
        >>> checks = connect().corpus_verify("checked.tadoc")
        >>> {row[checks.columns.index("status")] for row in checks}
        {'ok'}
        """
        return self._call("corpus_verify", locals())

    def read_text(self, glob: Location) -> Result:
        """Returns plain files, one row for each.

        >>> import pathlib
        >>> _ = pathlib.Path("plain.txt").write_text("to be")
        >>> [row[:3] for row in connect().read_text("plain.txt")]
        [('plain.txt', 5, 'to be')]
        """
        return self._call("read_text", locals())

    def read_lines(self, glob: Location) -> Result:
        """Returns the lines of plain files.

        >>> import pathlib
        >>> _ = pathlib.Path("lines.txt").write_text("to be\\nor not")
        >>> connect().read_lines("lines.txt").rows()
        [('lines.txt', 1, 'to be'), ('lines.txt', 2, 'or not')]
        """
        return self._call("read_lines", locals())
