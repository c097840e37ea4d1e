"""Every function gives the rows and the errors of the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import datafusion_tadoc as tadoc

CALLS = [
    "documents(@)", "word_count(@)", "word_sort(@, fold => true)", "inverted_index(@)", "term_vector(@)",
    "tfidf(@)", "doc_term_matrix(@)", "tokens(@)", "sequence_count(@, n => 2, by_doc => true)",
    "ranked_inverted_index(@, n => 2)", "cooccurrence(@, window => 3)", "repeated_phrases(@, min_words => 2)",
    "near_duplicates(@, threshold => 0.1, n => 1)", "near_duplicate_clusters(@, threshold => 0.1, n => 1)", "log_templates(@, similarity => 0.5)", "log_templates(@, by_doc => true)",
    "repeated_spans(@, min_words => 2)", "overlap(@, @, n => 2)",
    "search(@, '\"to b*\" OR horse')", "term_count(@, '/(?i)T[ho].*/')", "kwic(@, 'king', width => 2)",
    "grep(@, '(?i)to be', context => 1)", "collocates(@, 'be')", "keyness(@, @)", "dispersion(@, 'be')",
    "context(@, doc_id => 1, before => 1, after => 1)", "rank(@, 'horse OR king')", "extract(@, doc_id => 1, byte_offset => 2, byte_len => 5)", "corpus_info(@)", "corpus_verify(@)",
    "read_text('*.md')", "read_lines('*.md')", "ingestion_model(link_gb_per_s => 12)", "tadoc_functions()",
]
# Scalar functions, over the rows of `documents(@)`.
SCALARS = [
    "extract_text(@, doc_id, 0, 9)", "extract_text(@, doc_id, bytes / 2, NULL)", "count_word(@, doc_id, 'be')",
    "search_word(@, doc_id, 'horse')", "search_word(@, doc_id, split_part(path, '.', 1))", "tokenize(text)",
    "tokenize(text, 'uax29')", "text_quality(text)", "language(text)",
    "matches(text, 'horse OR \"to be\"')", "matches(text, 'HORSE', 'case')", "matches(NULL, 'be')", "highlight(text, 'king')",
    "highlight(text, 'to', '[', ']', fold => true)", "snippet(text, 'horse')",
    "snippet(text, 'nobler king', '<', '>', '...', 4, false, 'whitespace')",
    "parse(path, '{name}.{ending}')", "grok(text, '%{WORD:first} %{WORD:second}')", "logfmt('a=' || path || ' b=2')",
    "logfmt('a=' || path, 'a')", "json_get('{\"a\": 7}', 'a')", "json_get_int('{\"a\": 7}', 'a')",
    "json_get_float('{\"a\": 7.5}', 'a')", "json_get_bool('{\"a\": true}', 'a')",
]
ERRORS = [
    "word_cout(@)", "word_count('nowhere.tadoc')", "search(@, '\"open')", "search(@, 'king', max => 3)", "word_count(7)",
]
SCALAR_ERRORS = [
    "extract_text('nowhere.tadoc', doc_id, 0, 9)", "extract_text(@, 99, 0, 9)", "extract_text(@, doc_id, -1, 9)",
    "count_word(path, doc_id, 'be')", "search_word(@, doc_id)", "tokenize(text, 'no_profile')", "matches(text, '\"open')",
    "highlight(text, 'king', fold => 'stem:klingon')", "snippet(text, 'king', '<', '>', '...', 0)",
    "snippet(text, 'king', max_words => 4)", "snipet(text, 'king')",
]


def command(*arguments):
    tadoc_command = str(Path(sys.executable).parent / "tadoc")
    return subprocess.run([tadoc_command, *arguments], capture_output=True, text=True, check=False)


def as_json(value):
    """Writes a value as the command does."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return dict(value)  # A map is a list of pairs here.
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value


def command_rows(sql):
    """Returns the rows that the command prints."""
    said = command("sql", "--format", "ndjson", "--quiet", "-c", sql)
    assert said.returncode == 0, said.stderr
    return [json.loads(line) for line in said.stdout.splitlines()]


def module_rows(con, sql):
    """Returns the rows of the module, as the command prints them."""
    result = con.sql(sql)
    return [{name: as_json(value) for name, value in zip(result.columns, row)} for row in result.rows()]


def in_order(rows):
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.parametrize("call", CALLS)
def test_rows_are_those_of_the_command(call, plays, con, folder):
    (folder / "notes.md").write_text("one line\nand another\n")
    sql = f"SELECT * FROM {call.replace('@', repr(plays))}"
    assert in_order(module_rows(con, sql)) == in_order(command_rows(sql))


def scalar_sql(call, corpus):
    return f"SELECT doc_id, {call} AS answer FROM documents(@) ORDER BY doc_id".replace("@", repr(corpus))


@pytest.mark.parametrize("call", SCALARS)
def test_scalars_are_those_of_the_command(call, plays, con):
    sql = scalar_sql(call, plays)
    expected = command_rows(sql)
    assert len(expected) == 4
    assert module_rows(con, sql) == expected


@pytest.mark.parametrize(("kind", "calls"), [("table", CALLS), ("scalar", SCALARS)])
def test_every_function_is_called(kind, calls, con):
    names = {name for (name,) in con.sql("SELECT function FROM tadoc_functions() WHERE kind = $1", [kind]).rows()}
    assert names == {call.split("(")[0] for call in calls}


@pytest.mark.parametrize("call", [*ERRORS, *SCALAR_ERRORS])
def test_errors_are_those_of_the_command(call, plays, con):
    sql = scalar_sql(call, plays) if call in SCALAR_ERRORS else f"SELECT * FROM {call.replace('@', repr(plays))}"
    said = command("sql", "-c", sql)
    with pytest.raises(tadoc.Error) as error:
        con.sql(sql).rows()
    assert said.stderr == f"error: {error.value}\n"


def test_the_command_is_installed():
    assert command("--version").stdout == f"tadoc {tadoc.__version__}\n"
    assert command("sql", "-c", "SELEC").returncode == 1
    assert command("no-such-command").returncode == 2
