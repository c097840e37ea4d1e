"""The command `tadoc` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

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
HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run_command(*arguments: str, progress: bool = False) -> None:
    """Runs the command `tadoc`, in a process of its own, so that Ctrl-C is its to handle."""
    command = [sys.executable, "-c", START, HOME, *arguments]
    done = subprocess.run(command, stderr=None if progress else subprocess.PIPE, check=False)
    if done.returncode != 0:
        said = (done.stderr or b"").decode(errors="replace").strip()
        lines = [line for line in said.splitlines() if line.startswith("error: ")]
        raise Error(lines[-1].removeprefix("error: ") if lines else said or f"tadoc {arguments[0]} failed")
