"""The examples of the README files run."""

import re
from pathlib import Path

import pytest

import datafusion_tadoc as tadoc

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("readme", ["README.md", "src/python/README.md"])
def test_blocks_of_python_run(readme, con, folder):
    text = (ROOT / readme).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    if any("import datafusion\n" in block for block in blocks):
        pytest.importorskip("datafusion")
    tadoc.write_gsst(con.sql("SELECT 1 AS id, 'https://a.example' AS url"), "names.parquet")
    (folder / "notes_folder").mkdir()
    (folder / "minutes.txt").write_text("to be decided")
    names = {}
    for block in blocks:
        if "device_arrays" not in block:
            exec(compile(block, readme, "exec"), names)


def test_blocks_for_devices_run(con, folder):
    tadoc.write_gsst(con.sql("SELECT 'https://a.example' AS url"), "names.parquet")
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("no device")
    text = (ROOT / "src/python/README.md").read_text()
    blocks = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "device_arrays" in block]
    assert blocks
    for block in blocks:
        names = {"tadoc": tadoc, "cupy": cupy}
        exec(compile(block, "src/python/README.md", "exec"), names)
        assert names["has_slash"] == 2


def test_all_methods_are_in_the_readme():
    text = (ROOT / "src/python/README.md").read_text()
    methods = {name for name in vars(tadoc._functions.Functions) if not name.startswith("_")}
    listed = re.search(r"Methods call the table function of their name.*?: (.*?)\. Options", text, re.DOTALL).group(1)
    assert set(re.findall(r"`(\w+)`", listed)) == methods
    others = {name for name in vars(tadoc.Connection) if not name.startswith("_")}
    others |= {name for name in vars(tadoc.Result) if not name.startswith("_")}
    assert {name for name in others if not re.search(rf"`[^`\n]*\b{name}\b", text)} == set()
