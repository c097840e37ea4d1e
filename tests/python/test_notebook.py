"""What people see in the cells of a notebook, run by nbclient."""

import os

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

import datafusion_tadoc as tadoc


@pytest.fixture
def run(folder, monkeypatch):
    """Runs cells in one notebook, and returns the outputs of each."""
    home = os.path.dirname(os.path.dirname(tadoc.__file__))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")])))

    def run_cells(*cells):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        client = nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}})
        client.execute()
        return [cell.outputs for cell in notebook.cells]

    return run_cells


def test_a_cell_shows_a_bounded_table(run):
    tadoc.ingest(((f"{n}.txt", f"line {n} " + "long " * 1000) for n in range(500)), "many.tadoc")
    (_, [shown], [line], [counted]) = run(
        "import datafusion_tadoc as tadoc",
        "tadoc.sql(\"SELECT doc_id, path, text, '<b>&' AS sign FROM 'many.tadoc' ORDER BY doc_id\")",
        "tadoc.sql('SELECT 1 AS a').show()",
        "len(tadoc.sql(\"SELECT * FROM 'many.tadoc'\"))",
    )
    html, text = shown.data["text/html"], shown.data["text/plain"]
    assert html.count("<tr>") == 41 and "<th>path</th>" in html and "39.txt" in html and "40.txt" not in html
    assert "&lt;b&gt;&amp;" in html and "<b>" not in html
    assert len(html) < 40_000 and len(text) < 40_000 and "line 39" in text
    assert "| a |" in line.text
    assert counted.data["text/plain"] == "500"


def test_an_ingest_of_rows_shows_its_progress(run):
    (_, outputs) = run(
        "import datafusion_tadoc as tadoc, datafusion_tadoc._progress as shown\n"
        "shown.SHOW_AFTER = shown.DRAW_EVERY = 0",
        "rows = ((f'{n}.txt', f'line {n} of many') for n in range(500))\n"
        "_ = tadoc.ingest(rows, 'rows.tadoc', progress=True)",
    )
    text = "".join(output.text for output in outputs if output.output_type == "stream")
    # No escape of a terminal, and each line covers the one before.
    assert "\x1b" not in text and "\r500 documents, 7.9 kB of text, " in text
    lines = text.split("\r")
    assert all(len(line) >= len(before.rstrip()) for before, line in zip(lines, lines[1:-1]))
    assert lines[-1].startswith("rows.tadoc: 500 documents, 7.9 kB of text in ")


def test_an_error_and_an_interrupt_end_the_cell_alone(run):
    (_, [said], [after]) = run(
        "import datafusion_tadoc as tadoc",
        "try:\n    tadoc.sql('SELECT nothing').show()\nexcept tadoc.Error as error:\n    print(error)",
        "tadoc.sql('SELECT 1').fetchone()",
    )
    assert "nothing" in said.text
    assert after.data["text/plain"] == "(1,)"
