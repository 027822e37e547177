"""Flags that several commands share, and a parser with our form of errors."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ...runtime.math_policies import POLICIES
from .loaded_files import add_load

if TYPE_CHECKING:
    from ...compiler.spec import MatmulSpec

DEFAULT_TARGET = "sm_100a"
SHOWN_DIGITS = 40
DYNAMIC, ALL = "dynamic", "all"
SIZES = {"m": "rows of A and C", "n": "rows of B, columns of C", "k": "columns of A and B"}
GAPS = {
    **{f"ld{name}": f"leading dimension of {name.upper()} (default: no padding)" for name in "abc"},
    **{f"stride_{name}": f"from one matrix of {name.upper()} to the next" for name in "abc"},
}
OF_GROUPS = ("group_size", "zero_points")
CHOICES = {
    "a_dtype": "type of A (default bf16; mx* and nvfp4 with block scales)",
    "b_dtype": "type of B (default bf16)",
    "c_dtype": "type of C (default bf16; mx* and nvfp4 with block scales)",
    "acc_dtype": "type of the accumulators (default f32)",
    "a_major": "k: A is stored M×K, m: K×M (default k)",
    "b_major": "k: B is stored N×K, n: K×N (default k)",
}
SCALES = {
    "scale_layout": "layout of block scales: blocked or linear (default blocked)",
    "scale_rounding": "rounding of the block scales of C: floor, ceil, even or rceil; for nvfp4"
    " nearest or normal (default the first)",
    "a_scales": "f32 scales of A, one for each block of 1x128 or 128x128 elements",
    "b_scales": "f32 scales of B, likewise",
    "scale_dtype": "type of the scales of narrow weights: bf16, f16 or f32",
    "sums": "two-level: threads accumulate in f32 after every 128 elements of K (sm_90a, sm_100a)",
}
METAVARS = {"major": "AXIS", "layout": "LAYOUT", "rounding": "HOW", "scales": "FORM", "sums": "HOW"}


class UsageError(Exception):
    """The command line itself is wrong; `str(error)` is the whole message."""


class _Once(argparse._StoreAction):
    """Stores an option's value, and refuses a second one, which would hide the first."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        if option_string is not None and self in parser.given:
            raise argparse.ArgumentError(self, f"must be given once, got {values} as well")
        parser.given.add(self)
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError, takes an option once, and keeps the epilogue's
    line breaks."""

    def __init__(self, **keywords: Any):
        keywords.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **keywords)
        self.given: set[argparse.Action] = set()
        for name in (None, "store"):
            self.register("action", name, _Once)

    def parse_known_args(self, *arguments: Any, **keywords: Any) -> Any:
        """Refuses what it does not know by itself: the whole program would not name the command."""
        self.given.clear()
        options, unknown = super().parse_known_args(*arguments, **keywords)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"error: {self.prog}: {message}; see {self.prog} --help")


def add_problem(parser: Parser, file_help: str, dynamic: bool = False) -> None:
    """The matmul: a file, or spec flags, with `dynamic` for any M, batch or K."""
    parser.usage = f"{parser.prog} [options] (FILE | --m SIZE --n SIZE --k SIZE [spec options])"
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help=file_help)
    parser.add_argument(
        "--trust", action="store_true", help="load a .pt2 FILE even if it may run code"
    )
    add_spec(parser, "spec, instead of FILE", dynamic=dynamic)


def add_spec(
    parser: Parser,
    title: str = "spec",
    defaults: dict[str, int] | None = None,
    dynamic: bool = False,
) -> None:
    """The matmul by spec flags; `defaults` are sizes that need not be given.

    With `dynamic` --m may be the word, for a kernel that takes any M, --batch for any batch, or --k
    for any K.
    """
    group = parser.add_argument_group(title)
    more_group = parser.add_argument_group("strides, scales and weights of the spec")
    parser.set_defaults(**(defaults or {}))
    for name, meaning in SIZES.items():
        any_size = dynamic and name in ("m", "k")
        type_, more = (_open, f", or '{DYNAMIC}'") if any_size else (_integer, "")
        group.add_argument(f"--{name}", type=type_, metavar="SIZE", help=meaning + more)
    type_, more = (_open, f", or '{DYNAMIC}'") if dynamic else (_integer, "")
    help_ = "number of matrices" + more
    group.add_argument("--batch", type=type_, metavar="SIZE", help=help_)
    for name, meaning in CHOICES.items():
        _add_choice(group, name, meaning + _types_of(name))
    for name, meaning in GAPS.items():
        flag = f"--{name.replace('_', '-')}"
        more_group.add_argument(flag, dest=name, type=_integer, metavar="ELEMENTS", help=meaning)
    for name, meaning in SCALES.items():
        _add_choice(more_group, name, meaning)
    help_ = "elements of K that share a scale of narrow weights: 32, 64, 128 or all"
    more_group.add_argument("--group-size", type=_group, metavar="SIZE", help=help_)
    help_ = "u4 weights have a zero point for each scale"
    more_group.add_argument("--zero-points", action="store_true", default=None, help=help_)


def _add_choice(group: Any, name: str, help_: str) -> None:
    """The flag of a field of the spec that has a few values."""
    metavar = METAVARS.get(name.rpartition("_")[2], "TYPE")
    group.add_argument(f"--{name.replace('_', '-')}", dest=name, metavar=metavar, help=help_)


def _types_of(name: str) -> str:
    """What a flag of a type takes, to append to its help; nothing for the other flags."""
    from ...compiler.spec.problem import B_DTYPES, SPEC_DTYPES
    from ...dialects.dtypes import ACCUMULATOR_DTYPES, OUTPUT_DTYPES, SCALED_FORMATS

    types = {
        "a_dtype": ", ".join(SPEC_DTYPES),
        "b_dtype": f"those of A, {', '.join(sorted({*B_DTYPES} - {*SPEC_DTYPES}))}",
        "c_dtype": ", ".join((*OUTPUT_DTYPES, *SCALED_FORMATS)),
        "acc_dtype": ", ".join(ACCUMULATOR_DTYPES),
    }
    return f": {types[name]}" if name in types else ""


def add_pipeline(parser: Parser) -> None:
    """How it is compiled."""
    group = parser.add_argument_group("compilation")
    add_schedule(group)
    group.add_argument("--stop-after", metavar="PASS", help="leave out the passes after this one")
    group.add_argument("--allow-spills", action="store_true", help="accept register spills")
    group.add_argument(
        "--math",
        choices=POLICIES,
        help="accuracy of an epilogue's functions (default: fast if C has 16 or 8 bits)",
    )
    group.add_argument(
        "--origins",
        action="store_true",
        help="write .loc directives that name the pass from which each instruction comes",
    )


def add_schedule(group: Any) -> None:
    """For which chip, and by which passes; `group` is a group of a parser."""
    from ...dialects.target import GPUS, TARGETS

    chips, gpus = ", ".join(TARGETS), ", ".join(GPUS)
    group.add_argument(
        "--target",
        help="chip, or GPU to choose schedules for (default: the file's, else"
        f" {DEFAULT_TARGET}): {chips}; {gpus}",
    )
    which = group.add_mutually_exclusive_group()
    help_ = "passes and options, as 'tiling{tile=128x64x64},pipelining'; opt --list-passes has them"
    which.add_argument("--pipeline", metavar="TEXT", help=help_)
    which.add_argument("--preset", metavar="NAME", help="a pipeline of docs/presets.md, as v6")
    add_load(group)


def add_reference(group: Any) -> None:
    """What to hold a kernel to that has no source; `group` is a parser or a group of one."""
    group.add_argument(
        "--reference",
        type=Path,
        metavar="FILE",
        help="the .mlir or .pt2 file to compare a kernel with",
    )


def add_seed(group: Any) -> None:
    """The seed of a run; `group` is a parser or a group of one."""
    group.add_argument(
        "--seed",
        type=natural,
        default=0,
        metavar="N",
        help="seed of inputs and of the order of events (default 0)",
    )


def add_json(parser: Parser) -> None:
    """One object on stdout instead of text."""
    parser.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS,  # so that `tilewright --json run` keeps it
        help="print one JSON object on stdout, logs on stderr",
    )


def problem(
    options: argparse.Namespace, parser: Parser, allows_spec: bool = False
) -> MatmulSpec | Path:
    """The file that was named, or the spec that the flags describe; one of them, unless a spec may
    stand beside a file."""
    given = _given(options)
    if options.trust:
        _check_trusted(options.file, parser)
    if options.file is not None:
        if not allows_spec:
            _refuse_flags(given, parser)
        if options.trust:
            from ...compiler.importers.exported_file import trust

            trust(options.file)
        return options.file
    return _make_spec(given, parser, "a FILE or --m, --n and --k")


def _check_trusted(file: Path | None, parser: Parser) -> None:
    from ...compiler.importers.file_kinds import EXPORTED

    if file is None or file.suffix != EXPORTED:
        parser.error(f"--trust must come with a {EXPORTED} FILE, got {file or 'none'}")


def spec_of(options: argparse.Namespace, parser: Parser) -> MatmulSpec:
    """The spec that the flags of `add_spec` describe."""
    return _make_spec(_given(options), parser, "--m, --n and --k")


def reference_of(options: argparse.Namespace, parser: Parser) -> MatmulSpec | Path | None:
    """What the command line names to hold the kernel of FILE to: --reference, or spec flags."""
    if options.file is None or not _given(options):
        return options.reference
    if options.reference is not None:
        parser.error("--reference must come without spec flags, which name another reference")
    return spec_of(options, parser)


def _given(options: argparse.Namespace) -> dict[str, Any]:
    given = {
        name: getattr(options, name)
        for name in (*SIZES, "batch", *OF_GROUPS, *GAPS, *CHOICES, *SCALES)
    }
    return {name: value for name, value in given.items() if value is not None}


def _make_spec(given: dict[str, Any], parser: Parser, wanted: str) -> MatmulSpec:
    missing = [f"--{name}" for name in SIZES if name not in given]
    if missing:
        parser.error(f"{wanted} must be given, got no {', '.join(missing)}")
    from ...compiler.spec import BATCH_HINT, DEPTH_HINT, ROWS_HINT, MatmulSpec

    if given.get("batch") == 0:
        parser.error("--batch must be from 1 on, got 0; leave it out for one matrix")
    if given["m"] == DYNAMIC:
        given = {**given, "m": ROWS_HINT, "dynamic_m": True}
    if given.get("batch") == DYNAMIC:
        given = {**given, "batch": BATCH_HINT, "dynamic_batch": True}
    if given["k"] == DYNAMIC:
        given = {**given, "k": DEPTH_HINT, "dynamic_k": True}
    if given.get("group_size") == ALL:
        given = {**given, "group_size": given["k"]}
    return MatmulSpec(**given)


def compile_keywords(options: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of compile_matmul that `add_pipeline`'s flags stand for."""
    names = ("target", "pipeline", "preset", "stop_after", "allow_spills", "origins", "math")
    return {name: getattr(options, name) for name in names}


def _refuse_flags(given: dict[str, Any], parser: Parser) -> None:
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        parser.error(f"a FILE must come without spec flags, got {flags}")


def natural(text: str) -> int:
    """An argument type: an integer from 0, below 2^63."""
    value = _integer(text)
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"must be an integer from 0 below 2^63, got '{text}'")
    return value


def positive(text: str) -> int:
    """An argument type: an integer from 1, below 2^63."""
    value = natural(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be an integer from 1, got '{text}'")
    return value


def factor(text: str) -> float:
    """An argument type: a number from 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number from 0, got '{text}'")
    return value


def _group(text: str) -> int | str:
    return text if text == ALL else _integer(text)


def _open(text: str) -> int | str:
    return text if text == DYNAMIC else _integer(text)


def _integer(text: str) -> int:
    """In the digits 0 to 9 alone: Python also takes others, spaces and `1_0`, for ten."""
    try:
        if not re.fullmatch(r"-?[0-9]+", text):
            raise ValueError(text)
        return int(text)
    except ValueError:
        got = text if len(text) <= SHOWN_DIGITS else f"{text[:SHOWN_DIGITS]}…"
        raise argparse.ArgumentTypeError(f"must be an integer, got '{got}'") from None
