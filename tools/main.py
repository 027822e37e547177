"""`tilewright`: parses the command line, runs one command, and turns every failure into one line.

Exit status: 0 done, 1 refused or failed, 2 wrong usage. Nothing slow is imported before a command
needs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from . import compile, conform, emulate, explain, ladder, opt, run, tune
from .arguments import Parser, UsageError
from .emulate import deadlock_of
from .output import print_json

EXAMPLES = """examples:
  tilewright run --m 512 --n 768 --k 320
  tilewright compile --m 512 --n 768 --k 320 --emit ptx -o matmul.ptx
  tilewright opt matmul.mlir --passes normalize,tiling
  tilewright explain schedule --m 4096 --n 4096 --k 4096
  tilewright ladder --m 512 --n 512 --k 512
  tilewright tune all --shapes 1024x1024x1024 -o sm_90a.json
  tilewright emulate kernel.ptx --launch launch.json
  tilewright conform torch:matmul
  tilewright --version
"""
DEBUG_VARIABLE = "TILEWRIGHT_DEBUG"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(words)
    except UsageError as error:
        return _fail(str(error), words, status=2)
    except KeyboardInterrupt:
        return _fail("error: interrupted", words, status=130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        return _fail(_explain(error), words, 2 if is_usage(error) else 1, deadlock_of(error))


def is_usage(error: Exception) -> bool:
    """Whether an error says that an option or a spec field can't be taken."""
    return _is_of_compiler(error, "OptionError")


def _is_of_compiler(error: Exception, name: str) -> bool:
    """Whether it is that class of dialects.errors, which can't be imported without MLIR."""
    package = (__package__ or "").partition(".")[0]
    module = sys.modules.get(f"{package}.dialects.errors")
    return module is not None and isinstance(error, getattr(module, name))


def build_parser() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="tilewright",
        description="Compiles a matmul to Blackwell PTX and runs it on an emulator.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--version", action="store_true", help="name the tools' versions and exit")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in (compile, opt, run, explain, ladder, emulate, conform, tune):
        command.add_command(commands)
    return parser


def _dispatch(words: list[str]) -> int:
    parser = build_parser()
    options = parser.parse_args(words)
    if options.version:
        return _print_versions(options.json)
    if not hasattr(options, "command"):
        parser.error("a command must be named, got none")
    status = options.command(options)
    sys.stdout.flush()
    return status


def _print_versions(as_json: bool) -> int:
    from ..compiler.backend import versions

    found = versions()
    if as_json:
        print_json({"ok": True, **found})
    else:
        print("\n".join(f"{name} {version}" for name, version in found.items()))
    return 0


def _explain(error: Exception) -> str:
    from ..runtime.errors import DeviceError

    if _is_of_compiler(error, "CompileError"):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"error: {error.name}: must be installed for this, got none; pip install tilewright"
    if isinstance(error, DeviceError):
        return str(error) if ": error: " in str(error) else f"error: {error}"
    if isinstance(error, OSError):
        where = error.filename or "file"
        return f"error: {where}: must be usable, got {error.strerror or error}; use another path"
    return (
        f"internal error: {type(error).__name__}: {error}; please report it with the command,"
        f" the output of tilewright --version, and the traceback that {DEBUG_VARIABLE}=1 shows"
    )


def _fail(
    message: str, words: list[str], status: int, details: Mapping[str, Any] | None = None
) -> int:
    print(message, file=sys.stderr)
    if "--json" in words:
        print_json({"ok": False, "error": message, **(details or {})})
    return status


if __name__ == "__main__":
    sys.exit(main())
