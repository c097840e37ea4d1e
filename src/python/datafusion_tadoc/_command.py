"""The command `tadoc` in a process of its own, and its arguments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from datafusion_tadoc._errors import in_python
from datafusion_tadoc._native import Error

#: Starts the command. With `-c`, as with `-m`, Python looks for modules in the current folder first,
#: so that goes before anything is imported. `sys` is a part of the interpreter. The folder of this
#: package comes last, as the program may have its own way to find it.
START = """\
import sys
sys.path[:] = [*filter(None, sys.path), sys.argv.pop(1)]
from datafusion_tadoc.__main__ import main
main()
"""
#: Seconds between two looks for signals. Libraries in Go let a read go on after a signal.
LOOK_EVERY = 0.1
HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def paths_of(source: Any) -> list[str] | None:
    """Returns the paths and URLs that `source` is or lists, or None if it is something else.

    >>> paths_of(["a.log", "logs/*.gz"]), paths_of([("a.txt", "to be")]), paths_of([])
    (['a.log', 'logs/*.gz'], None, None)
    """
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if isinstance(source, (list, tuple)) and source and all(isinstance(p, (str, os.PathLike)) for p in source):
        return [os.fspath(path) for path in source]
    return None


def options(**given: Any) -> list[str]:
    """Returns options of a command line. True is an option without a value, and each item of a list is a value.

    >>> options(html="text", keep_going=True, glob=["*.md", "*.rst"], charset=None, append=False)
    ['--html=text', '--keep-going', '--glob=*.md', '--glob=*.rst']
    """
    words = []
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words += [option] if value else []
        elif isinstance(value, Iterable) and not isinstance(value, str):
            words += [f"{option}={one}" for one in value]
        elif value is not None:
            words.append(f"{option}={value}")
    return words


def check_no_options(reading: list[str]) -> None:
    """Checks that nobody gave options of files for rows.

    >>> check_no_options(options(glob="*.md"))
    Traceback (most recent call last):
    TypeError: glob is for files; rows and pairs are documents already
    """
    for option in reading:
        keyword = option.removeprefix("--").removeprefix("no-").partition("=")[0].replace("-", "_")
        raise TypeError(f"{keyword} is for files; rows and pairs are documents already")


def run_command(*arguments: str, progress: bool = False, is_read: bool = False) -> str:
    """Runs the command `tadoc`, in a process of its own. Returns its standard output if `is_read` is true.

    An interrupt of this process is passed on, and raised when the command has cleaned up.
    """
    command = [sys.executable, "-c", START, HOME, *arguments]
    stdout = subprocess.PIPE if is_read else None
    process = subprocess.Popen(command, stdout=stdout, stderr=None if progress else subprocess.PIPE)
    output, stderr = None, None
    try:
        while process.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                output, stderr = process.communicate(timeout=LOOK_EVERY)
    except BaseException:
        for pipe in filter(None, [process.stdout, process.stderr]):
            # Nobody reads what the command still says, and it must not wait for that.
            pipe.close()
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    if process.returncode != 0:
        said = (stderr or b"").decode(errors="replace").strip()
        lines = [line for line in said.splitlines() if line.startswith("error: ")]
        text = lines[-1].removeprefix("error: ") if lines else said or f"tadoc {arguments[0]} failed"
        raise Error(in_python(text))
    return (output or b"").decode()
