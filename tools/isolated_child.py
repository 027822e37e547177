"""The child process of `isolated`: runs a command line as the program itself would."""

from __future__ import annotations

import logging
import os
import sys

from ..runtime.child import watch_parent
from .command_line.own_process import as_process
from .main import run


def main() -> None:
    """argv: the descriptor for messages, that of the parent's pipe, and the command line."""
    messages, watched, *words = sys.argv[1:]
    logging.raiseExceptions = False  # what a library can't log for want of memory is no traceback
    watch_parent(int(watched))
    status = as_process(lambda: run(words), int(messages))
    os._exit(status)  # all is written; what native code does at an exit can't change it


if __name__ == "__main__":
    main()
