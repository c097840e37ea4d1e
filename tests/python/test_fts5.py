"""The query language finds the documents that SQLite's FTS5 finds, for random queries."""

import random

import fts5_queries
import datafusion_tadoc as tadoc

WORDS = """storm night power loss harbour ship captain signal light lamp island tide wind rope anchor crew cargo chart
compass deck sail mast engine fuel water bread letter king queen castle horse river bridge tower market""".split()
BETWEEN = [" ", " ", " ", ", ", "; ", " - ", ".\n"]


def texts_of(rng, number):
    """Returns texts in which words are as frequent as their place in a list, and pairs come back."""
    def word():
        word = WORDS[min(int(rng.expovariate(0.12)), len(WORDS) - 1)]
        return rng.choice([word, word, word, word.capitalize(), word.upper()])

    return ["".join(word() + rng.choice(BETWEEN) for _ in range(rng.randint(21, 80))) for _ in range(number)]


def test_random_queries_find_what_fts5_finds(con):
    rng = random.Random(24)
    texts = texts_of(rng, 150)
    queries = list(fts5_queries.random_queries(texts, rng, 400))
    tadoc.ingest([(f"{number:03}", text) for number, text in enumerate(texts)], "texts.tadoc")
    expected = fts5_queries.documents_of(fts5_queries.table_of(texts), queries)
    assert sum(map(bool, expected)) > 200
    sql = "SELECT path FROM term_count('texts.tadoc', $1, fold => true) ORDER BY path"
    for query, numbers in zip(queries, expected, strict=True):
        assert [int(path) for (path,) in con.sql(sql, [query]).rows()] == numbers, query
