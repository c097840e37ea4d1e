"""Random queries in the grammar that SQLite's FTS5 and the query language share, and FTS5's answers.

FTS5 (in Python's standard library) is an outside oracle: it has its own parser, tokenizer and index. It
is told to take the same characters as words (`categories`), but its Unicode tables are older. Queries are
made of ASCII words. Both sides match words in any case.
"""

import re
import sqlite3


def random_queries(texts, rng, number):
    """Yields queries of words and phrases that stand in the texts, joined by every operator."""
    words_of = [re.findall(r"\b[A-Za-z][A-Za-z0-9]*\b", text) for text in rng.sample(texts, min(300, len(texts)))]
    words_of = [words for words in words_of if len(words) > 20]

    def phrase(most):
        words = rng.choice(words_of)
        at = rng.randrange(len(words))
        return '"' + " ".join(words[at:at + rng.randint(1, most)]) + '"'

    def near():
        words = rng.choice(words_of)
        at = rng.randrange(len(words))
        picked = [words[min(at + rng.randrange(12), len(words) - 1)] for _ in range(rng.randint(2, 3))]
        return "NEAR(" + " ".join(f'"{word}"' for word in picked) + f", {rng.randint(0, 12)})"

    def phrase_with_prefix():
        words = rng.choice(words_of)
        at = rng.randrange(len(words) - 3)
        *whole, last = words[at:at + rng.randint(1, 3)]
        cut = last[:rng.randint(1, len(last))]
        return '"' + " ".join([*whole, cut]) + rng.choice(['"*', '" *'])

    def prefix():
        return rng.choice(rng.choice(words_of))[:rng.randint(2, 5)] + "*"

    def first():
        words = rng.choice(words_of)
        return rng.choice([f'^"{words[0]}"', f'^"{words[0]} {words[1]}"', "^" + words[0][:2] + "*", "^" + phrase(1),
                           f'^"{words[0]} {words[1][:2]}"*'])

    def leaf():
        return rng.choice([lambda: phrase(1), lambda: phrase(3), near, prefix, phrase_with_prefix, first])()

    def node(depth):
        if depth == 0 or rng.random() < 0.3:
            return leaf()
        joiner = rng.choice([" AND ", " OR ", " NOT ", " "])
        if joiner == " ":
            # FTS5 has no implied AND around parentheses.
            return " ".join(leaf() for _ in range(rng.randint(2, 3)))
        parts = [node(depth - 1) for _ in range(2)]
        return joiner.join(f"({part})" if rng.random() < 0.5 else part for part in parts)

    for _ in range(number):
        yield node(rng.randint(0, 3))


def table_of(texts):
    """Returns a database with the texts in an FTS5 table, by number."""
    db = sqlite3.connect(":memory:")
    tokenizer = "unicode61 remove_diacritics 0 categories 'L* Nd Nl M* Pc'"
    db.execute(f'CREATE VIRTUAL TABLE t USING fts5(x, tokenize="{tokenizer}")')
    db.executemany("INSERT INTO t(rowid, x) VALUES (?, ?)", enumerate(texts))
    return db


def documents_of(db, queries):
    """Returns the numbers of the texts that meet each query."""
    found = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rowid"
    return [[row[0] for row in db.execute(found, (query,))] for query in queries]
