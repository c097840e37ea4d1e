"""Every table function gives the rows and the errors of the command line."""

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
    "repeated_spans(@, min_words => 2)", "overlap(@, @, n => 2)",
    "search(@, '\"to b*\" OR horse')", "term_count(@, '/(?i)T[ho].*/')", "kwic(@, 'king', width => 2)",
    "grep(@, '(?i)to be', context => 1)", "collocates(@, 'be')", "keyness(@, @)", "dispersion(@, 'be')",
    "rank(@, 'horse OR king')", "extract(@, doc_id => 1, byte_offset => 2, byte_len => 5)", "corpus_info(@)", "corpus_verify(@)",
    "read_text('*.md')", "read_lines('*.md')", "ingestion_model(link_gb_per_s => 12)", "tadoc_functions()",
]
ERRORS = [
    "word_cout(@)", "word_count('nowhere.tadoc')", "search(@, '\"open')", "search(@, 'king', max => 3)", "word_count(7)",
]


def command(*arguments):
    tadoc_command = str(Path(sys.executable).parent / "tadoc")
    return subprocess.run([tadoc_command, *arguments], capture_output=True, text=True, check=False)


def as_json(value):
    """Writes a value as the command does."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value


def in_order(rows):
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.parametrize("call", CALLS)
def test_rows_are_those_of_the_command(call, plays, con, folder):
    (folder / "notes.md").write_text("one line\nand another\n")
    sql = f"SELECT * FROM {call.replace('@', repr(plays))}"
    said = command("sql", "--format", "ndjson", "--quiet", "-c", sql)
    assert said.returncode == 0, said.stderr
    expected = [json.loads(line) for line in said.stdout.splitlines()]
    result = con.sql(sql)
    rows = [
        {name: as_json(value) for name, value in zip(result.columns, row) if value is not None}
        for row in result.rows()
    ]
    assert in_order(rows) == in_order(expected)


def test_every_function_is_called(con):
    names = {name for (name,) in con.sql("SELECT function FROM tadoc_functions() WHERE kind = 'table'").rows()}
    assert names == {call.split("(")[0] for call in CALLS}


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_those_of_the_command(call, plays, con):
    sql = f"SELECT * FROM {call.replace('@', repr(plays))}"
    said = command("sql", "-c", sql)
    with pytest.raises(tadoc.Error) as error:
        con.sql(sql).rows()
    assert said.stderr == f"error: {error.value}\n"


def test_the_command_is_installed():
    assert command("--version").stdout == f"tadoc {tadoc.__version__}\n"
    assert command("sql", "-c", "SELEC").returncode == 1
    assert command("no-such-command").returncode == 2
