"""The command `tadoc` in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from datafusion_tadoc._native import Error


def run_command(*arguments: str, progress: bool = False) -> None:
    """Runs the command `tadoc`, in a process of its own, so that Ctrl-C is its to handle."""
    command = [sys.executable, "-m", "datafusion_tadoc", *arguments]
    done = subprocess.run(command, stderr=None if progress else subprocess.PIPE, check=False)
    if done.returncode != 0:
        said = (done.stderr or b"").decode(errors="replace").strip()
        lines = [line for line in said.splitlines() if line.startswith("error: ")]
        raise Error(lines[-1].removeprefix("error: ") if lines else said or f"tadoc {arguments[0]} failed")
