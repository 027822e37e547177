"""`tilewright`: parses the command line, runs one command, and turns every failure into one line.

docs/tools.md has the exit status. Nothing slow is imported before a command needs it, and nothing
of ours before an interruption gets its one line.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .command_line.arguments import Parser

EXAMPLES = """examples:
  tilewright run --m 512 --n 768 --k 320
  tilewright compile --m 512 --n 768 --k 320 --emit ptx -o matmul.ptx
  tilewright opt matmul.mlir --passes normalize,tiling
  tilewright bisect --m 256 --n 256 --k 128 --preset v6
  tilewright explain schedule --m 4096 --n 4096 --k 4096
  tilewright ladder --m 512 --n 512 --k 512
  tilewright tune all --shapes 1024x1024x1024 -o sm_90a.json
  tilewright emulate kernel.ptx --launch launch.json
  tilewright conform torch:matmul
  tilewright model check examples/llama_block.py
  tilewright --version
"""
COMMANDS = (
    "compile", "opt", "run", "bisect", "explain", "ladder", "emulate", "cute", "triton", "conform",
    "tune", "model",
)  # fmt: skip
"""Each is a module of `commands/`, which adds itself to the command line."""
DEBUG_VARIABLE = "TILEWRIGHT_DEBUG"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Without argv this process is the command's own: its streams and signals are taken over, and
    what strangers wrote is read in a child. With argv it runs here and leaves the process as it is.
    """
    try:
        if argv is not None:
            return run(list(argv))
        from .command_line.own_process import as_process

        return as_process(lambda: run(sys.argv[1:], isolate=True))
    except KeyboardInterrupt:  # while it was loading
        return _fail("error: interrupted", list(sys.argv[1:] if argv is None else argv), 130)


def run(words: list[str], isolate: bool = False) -> int:
    """Run one command and return its exit status; isolate: in a child, if it reads strangers'."""
    from .command_line.arguments import UsageError
    from .command_line.output import deadlock_of
    from .command_line.own_process import BROKEN_PIPE, INTERRUPTED, end_if_asked
    from .command_line.streams import drop_output

    try:
        return _dispatch(words, isolate)
    except UsageError as error:
        return _fail(str(error), words, status=2)
    except KeyboardInterrupt:
        return _fail("error: interrupted", words, INTERRUPTED)
    except BrokenPipeError:
        drop_output()
        return BROKEN_PIPE
    except Exception as error:
        end_if_asked()
        if os.environ.get(DEBUG_VARIABLE):
            raise
        return _fail(_explain(error), words, 2 if is_usage(error) else 1, deadlock_of(error))


def is_usage(error: Exception) -> bool:
    """Whether an error says that an option or a spec field can't be taken."""
    from ..dialects.errors import OptionError

    return isinstance(error, OptionError)


def build_parser(words: Sequence[str] = ()) -> Parser:
    """The parser of the whole command line; where its words begin with a command, of that alone."""
    from .command_line.arguments import Parser

    parser = Parser(
        prog="tilewright",
        description="Compiles a matmul to PTX for NVIDIA Blackwell and Hopper, and runs PTX on an"
        " emulator.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--version", action="store_true", help="name the tools' versions and exit")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        importlib.import_module(f".commands.{name}", __package__).add_command(commands)
    return parser


def _dispatch(words: list[str], isolate: bool) -> int:
    from .command_line.isolated import run_in_child, wants_child

    parser = build_parser(words)
    options = parser.parse_args(words)
    if options.version:
        status = _print_versions(options.json)
    elif not hasattr(options, "command"):
        parser.error("a command must be named, got none")
    elif isolate and wants_child(options):
        return run_in_child(words, options)
    else:
        status = _status_of(options)
    sys.stdout.flush()
    return status


def _status_of(options: Any) -> int:
    """The exit status of a command. Code that it loads, such as a model's, must not end it: with 0
    nobody would know that the work was not done."""
    from ..dialects.errors import CompileError
    from .command_line.loaded_files import load_files

    try:
        load_files(getattr(options, "load", None))
        return options.command(options)
    except SystemExit as error:
        rule = f"code that is loaded must not end the program, got sys.exit({error.code!r})"
        raise CompileError(f"{rule}; let it return") from error


def _print_versions(as_json: bool) -> int:
    from ..compiler.backend import versions
    from ..runtime.version import VERSION

    try:
        found = versions()
    except ModuleNotFoundError:
        found = {"tilewright": VERSION, "compiler": "not installed"}
    if as_json:
        from .command_line.output import print_json

        print_json({"ok": True, **found})
    else:
        print("\n".join(f"{name} {version}" for name, version in found.items()))
    return 0


def _explain(error: Exception) -> str:
    from ..dialects.errors import CompileError
    from ..runtime.child import is_out_of_memory, memory_limit, too_much_memory
    from ..runtime.errors import DeviceError
    from ..runtime.extras import missing
    from .command_line.own_process import unusable

    if is_out_of_memory(error):
        return f"error: {too_much_memory('memory', memory_limit())}"
    if isinstance(error, CompileError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"error: {missing(error)}"
    if isinstance(error, DeviceError):
        return str(error) if ": error: " in str(error) else f"error: {error}"
    if isinstance(error, OSError):
        return unusable(error)
    return (
        f"internal error: {type(error).__name__}: {error}; please report it with the command,"
        f" the output of tilewright --version, and the traceback that {DEBUG_VARIABLE}=1 shows"
    )


def _fail(
    message: str, words: list[str], status: int, details: Mapping[str, Any] | None = None
) -> int:
    from .command_line.output import print_json
    from .command_line.streams import drop_output

    print(message, file=sys.stderr)
    try:
        if "--json" in words:
            print_json({"ok": False, "error": message, **(details or {})})
        sys.stdout.flush()
    except OSError:  # that is what failed
        drop_output()
    return status


if __name__ == "__main__":
    sys.exit(main())
