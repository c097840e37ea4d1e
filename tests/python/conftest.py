"""Corpora and a connection for the tests. Each test runs in a folder of its own."""

import pytest

import datafusion_tadoc as tadoc

PLAYS = [
    ("hamlet.txt", "To be, or not to be: that is the question.\nWhether 'tis nobler in the mind\n"),
    ("richard.txt", "A horse! a horse! my kingdom for a horse!\nTo be or not to be king of the realm\n"),
    ("empty.txt", ""),
    ("bytes.bin", b"the \xff of the king\n"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def plays(folder):
    tadoc.ingest(PLAYS, "plays.tadoc")
    return "plays.tadoc"


@pytest.fixture
def con():
    return tadoc.connect()
