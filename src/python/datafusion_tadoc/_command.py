"""The command `tadoc` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

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
