"""The command ``tadoc``, also as ``python -m datafusion_tadoc``."""

import os
import signal
import sys

from datafusion_tadoc import _native


def main() -> None:
    """Runs the command line of this process and ends it."""
    if not hasattr(_native, "command"):
        sys.exit("error: this build of the module has no command; build it with the feature `command`")
    # The command handles interrupts itself, and Python cannot while the command runs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = _native.command(["tadoc", *sys.argv[1:]])
    # Nothing of Python is left to do, and queries that were told to stop may still run.
    os._exit(status)


if __name__ == "__main__":
    main()
