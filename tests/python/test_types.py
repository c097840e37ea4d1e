"""Signatures and stubs: options of SQL as keywords, misspelt ones, and type checkers over the package."""

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import datafusion_tadoc as tadoc
from datafusion_tadoc._functions import Functions

PACKAGE = Path(tadoc.__file__).parent
#: Functions that say something about this library, and nothing about texts.
WITHOUT_METHOD = {"ingestion_model", "tadoc_functions"}
#: Defaults that only Python has: the rest of a document.
DEFAULTS_OF_PYTHON = {("extract", "byte_offset"), ("extract", "byte_len")}
DEFAULTS = {"NULL": None, "false": False, "true": True}

PROGRAM = """
from __future__ import annotations

import datafusion_tadoc as tadoc
from datafusion_tadoc import Connection, Result

con: Connection = tadoc.connect(memory_limit="1GiB", threads=1, settings={"tadoc.max_hits": 7})
places: Result = con.kwic("x.tadoc", "be", width=3, fold="accents", blanks="keep")
one: tuple[object, ...] | None = con.execute("SELECT $1", [1]).fetchone()
many: list[tuple[object, ...]] = tadoc.sql("SELECT 1").fetchmany(2)
for row in places:
    print(row[0], len(places))
with tadoc.open("x.tadoc", table="x") as corpus:
    corpus.sql("SELECT * FROM x").show(limit=3)
"""
WRONG = [
    'con.kwic("x.tadoc", "be", widht=3)', 'con.kwic("x.tadoc", "be", width="3")', 'con.rank("x.tadoc")',
    'con.collocates("x.tadoc", "be", measure="z")', 'tadoc.connect(treads=1)', 'tadoc.ingest([], "x.tadoc", over_write=True)',
]  # fmt: skip


def options_of_sql(con):
    """The arguments of each table function, with the defaults of those that have one."""
    listed = con.sql("SELECT function, signature FROM tadoc_functions() WHERE kind = 'table'").rows()
    for function, signature in listed:
        arguments = re.fullmatch(r"\w+\((.*)\)", signature).group(1)
        yield function, [argument.split(" => ") for argument in arguments.split(", ") if argument]


def value(text):
    if text in DEFAULTS:
        return DEFAULTS[text]
    return text.strip("'") if text.startswith("'") else float(text)


def test_methods_have_the_options_of_sql(con):
    functions = dict(options_of_sql(con))
    methods = {name for name in vars(Functions) if not name.startswith("_")}
    assert methods == set(functions) - WITHOUT_METHOD
    for name in methods:
        parameters = list(inspect.signature(getattr(con, name)).parameters.values())
        assert [parameter.name for parameter in parameters] == [argument[0] for argument in functions[name]], name
        for parameter, argument in zip(parameters, functions[name], strict=True):
            if (name, parameter.name) in DEFAULTS_OF_PYTHON:
                continue
            expected = value(argument[1]) if len(argument) > 1 else inspect.Parameter.empty
            assert parameter.default == expected, (name, parameter.name)


def test_options_reach_sql(plays, con):
    assert con.search(plays, "KING", fold=True, doc_id=1).rows() == con.search(plays, "king", doc_id=1).rows() != []
    assert con.kwic(plays, "king", blanks="keep").rows() != con.kwic(plays, "question", blanks="keep").rows()
    assert len(con.rank(plays, "king", top=1, k1=0, b=0.0)) == 1
    with pytest.raises(tadoc.Error, match="NULL"):
        con.rank(plays, "king", top=None)


def test_misspelt_options_are_errors(plays, con):
    for call in [
        lambda: con.kwic(plays, "be", widht=3),
        lambda: con.word_count(plays, folds=True),
        lambda: tadoc.connect(treads=1),
        lambda: tadoc.ingest([("a", "b")], "x.tadoc", over_write=True),
    ]:
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            call()


def needs(checker):
    return pytest.mark.skipif(importlib.util.find_spec(checker) is None, reason=f"{checker} is not installed")


def run(*command):
    # In a folder of the test, so that nothing is written beside the package.
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def checked(check):
    """Checks that a program has no mistakes, and that each line with one has."""
    Path("right.py").write_text(PROGRAM)
    status, said = check("right.py")
    assert status == 0, said
    Path("wrong.py").write_text(PROGRAM + "\n".join(WRONG) + "\n")
    status, said = check("wrong.py")
    first = PROGRAM.count("\n") + 1
    lines = {int(line) for line in re.findall(r"wrong\.py:(\d+):.*error", said)}
    assert status == 1 and lines == set(range(first, first + len(WRONG))), said


@needs("mypy")
def test_mypy_checks_the_package_and_its_users(monkeypatch):
    if PACKAGE.parent.name != "site-packages":
        monkeypatch.setenv("MYPYPATH", str(PACKAGE.parent))
    assert (PACKAGE / "py.typed").exists()
    flags = ["--strict", "--cache-dir=cache", "--python-version=3.10", "--ignore-missing-imports"]
    flags.append("--disable-error-code=import-untyped")
    status, said = run("mypy", *flags, "-p", "datafusion_tadoc")
    assert status == 0, said
    checked(lambda file: run("mypy", *flags, file))


@needs("mypy")
def test_the_stub_has_what_the_module_has():
    native = tadoc._native
    stub = (PACKAGE / "_native.pyi").read_text()
    classes = {name for name in vars(native) if isinstance(getattr(native, name), type)}
    others = {name for name in vars(native) if callable(getattr(native, name))} - classes
    for name in classes:
        body = re.search(rf"^class {name}\b.*?(?=^\S|\Z)", stub, re.M | re.S)
        assert body, name
        members = {member for member in vars(getattr(native, name)) if not member.startswith("__")}
        assert members == {member for member in re.findall(r"def (\w+)", body.group()) if not member.startswith("__")}
    # Devices and the command are features of the build.
    assert others - set(re.findall(r"^def (\w+)", stub, re.M)) == set()


@needs("pyright")
def test_pyright_checks_users_of_the_package(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE.parent))
    status, said = run("pyright", "--version")
    if status != 0:
        # It fetches node when it runs first.
        pytest.skip(f"pyright does not start: {said.strip()[-200:]}")
    checked(lambda file: run("pyright", "--pythonpath", sys.executable, file))
