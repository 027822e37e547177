"""`tilewright model check`: the products of a user's model, compiled and verified without a GPU."""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.math_policies import POLICIES
from ..command_line.arguments import DEFAULT_TARGET, Parser, add_json
from ..command_line.output import check_place, print_json
from ..command_line.progress import Progress

if TYPE_CHECKING:
    from ...compiler.inductor.model_check import Part

EXAMPLES = """examples:
  tilewright model check examples/llama_block.py
  tilewright model check my_model.py:build --target sm_90a --backward
  tilewright model check package.models:small -o bundles --rows 64

The function takes no arguments. It returns a module of torch and its inputs: (model, (x,)).
"""
DEFAULT_NAME, DEFAULT_ROWS = "model", 32


def add_command(commands: Any) -> None:
    """Add `model` to the command line."""
    model: Parser = commands.add_parser(
        "model",
        help="compile and verify every product of a torch model",
        description="Shows what the provider of torch.compile makes of a model, without its data.",
        epilog=EXAMPLES,
    )
    actions = model.add_subparsers(title="actions", metavar="ACTION")
    model.set_defaults(command=lambda _: model.error("an ACTION must be named, got none"))
    parser: Parser = actions.add_parser(
        "check",
        help="list the products, verify each on the emulator, write bundles",
        description="Takes the graphs that torch.compile makes of a model, compiles each product"
        " with what follows it, and runs it on the emulator with fewer rows. Nothing else of the"
        " model is computed. Exit status 1 when a product is wrong or does not compile.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help=f"FILE.py:NAME, MODULE:NAME, or FILE.py, whose function is `{DEFAULT_NAME}`; its code"
        " runs",
    )
    parser.add_argument(
        "--target", default=DEFAULT_TARGET, metavar="CHIP", help="(default sm_100a)"
    )
    parser.add_argument("--backward", action="store_true", help="the products of gradients, too")
    parser.add_argument(
        "--rows",
        type=int,
        default=DEFAULT_ROWS,
        metavar="M",
        help=f"rows on the emulator (default {DEFAULT_ROWS}); 0 runs nothing",
    )
    parser.add_argument("--math", choices=POLICIES, help="how exact functions of epilogues are")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER", help="write a bundle for each kernel here"
    )
    add_json(parser)
    parser.set_defaults(command=functools.partial(check_command, parser))


def check_command(parser: Parser, options: argparse.Namespace) -> int:
    """Check a model as the options say; 0 when every product compiles and is right."""
    from ...dialects.target import find_target

    if options.rows < 0:
        parser.error(f"--rows must be 0 or more, got {options.rows}")
    find_target(options.target)
    if options.output is not None:
        check_place(options.output / "0.zip", bundle=True)
    parts = _checked(options)
    if options.output is not None:
        _write(parts, options.output)
    right = not any(_failed(part) for part in parts)
    if options.json:
        found = [_as_dict(number, part) for number, part in enumerate(parts)]
        print_json({"ok": right, "target": options.target, "products": found})
    else:
        _print(parts, options)
    return 0 if right else 1


def _failed(part: Part) -> bool:
    """Whether a product has a source and no kernel, or a kernel that is wrong.

    One that torch's graph multiplies as no kernel does is Inductor's, and no failure.
    """
    if part.checked is not None and not part.checked.right:
        return True
    return part.prepared is not None and part.bundle is None


def _checked(options: argparse.Namespace) -> list[Part]:
    from ...compiler.inductor.model_check import parts_of, verify
    from ...runtime.conformance.subjects import load_function

    text: str = options.model
    with Progress("tracing the model") as progress:
        function = load_function(text if ":" in text else f"{text}:{DEFAULT_NAME}")
        model, inputs = _model_and_inputs(text, function)
        progress.update("compiling its products")
        asked = {"backward": options.backward, "math": options.math or ""}
        parts = parts_of(model, inputs, options.target, **asked)
        for number, part in enumerate(parts):
            if options.rows:
                progress.update(f"running product {number + 1} of {len(parts)}")
                verify(part, options.rows)
    return parts


def _model_and_inputs(text: str, function: Callable[..., Any]) -> tuple[Any, tuple[Any, ...]]:
    from ...dialects.errors import CompileError

    try:
        made = function()
    except (Exception, SystemExit) as error:  # a user's function raises any kind
        got = f"{type(error).__name__}: {error}"
        raise CompileError(f"{text}: must return (model, inputs), got {got}") from error
    if not isinstance(made, tuple) or len(made) != 2 or not callable(made[0]):
        got = type(made).__name__
        raise CompileError(f"{text}: must return (model, inputs), got {got}")
    model, inputs = made
    return model, tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)


def _write(parts: Sequence[Part], folder: Path) -> None:
    from ...compiler.bundle_writer import write_bundle

    for number, part in enumerate(parts):
        if part.bundle is not None:
            bundle = part.bundle
            path = folder / f"{_name(number, part)}.zip"
            write_bundle(path, bundle.manifest, bundle.ptx, bundle.cubin)


def _name(number: int, part: Part) -> str:
    sizes = "x".join(str(each) for each in part.row.sizes)
    return f"{number:02}-{part.row.product.replace(' ', '-').strip('_')}-{sizes}"


def _print(parts: Sequence[Part], options: argparse.Namespace) -> None:
    from ..command_line.tables import print_table

    columns = ["product", "times []", "with", "schedule", "estimate [us]", "emulator"]
    print_table(columns, [_row(part) for part in parts])
    for part in parts:
        if not part.row.taken:
            print(f"{_title(part)} is left to Inductor: {part.row.reason}")
        elif part.checked and not part.checked.right:
            print(f"{_title(part)}: {part.checked.sizes}: {part.checked.reason}")
    kernels = sum(part.row.taken for part in parts)
    times = [part.row.estimate_us for part in parts]
    total = sum((us or 0) * part.row.count for us, part in zip(times, parts, strict=True))
    calls = sum(part.row.count for part in parts)
    print(f"{calls} products, {kernels} kernels for {options.target}, {total:.0f} us by estimate")


def _title(part: Part) -> str:
    sizes = "x".join(str(each) for each in part.row.sizes)
    return f"{part.row.product} {sizes} {part.row.dtype}"


def _row(part: Part) -> list[str]:
    row = part.row
    estimate = "" if row.estimate_us is None else f"{row.estimate_us:.1f}"
    return [_title(part), str(row.count), ", ".join(row.fused), _schedule(row.pipeline), estimate,
            _verdict(part)]  # fmt: skip


def _verdict(part: Part) -> str:
    if not part.row.taken:
        return "FAILED" if part.prepared else "left out"
    if part.checked is None:
        return "not run"
    return f"{'right' if part.checked.right else 'WRONG'} at {part.checked.sizes}"


def _schedule(pipeline: str) -> str:
    """What a reader looks for first in a pipeline: tile, cluster, stages, scheduler."""
    parts = []
    for name in ("tile", "shape", "stages", "scheduler"):
        found = re.search(rf"\b{name}=([\w-]+)", pipeline)
        if found:
            parts.append(found[1] if name == "tile" else f"{name} {found[1]}")
    return ", ".join(parts)


def _as_dict(number: int, part: Part) -> dict[str, Any]:
    row, checked = part.row, part.checked
    return {
        "product": row.product,
        "sizes": list(row.sizes),
        "dtype": row.dtype,
        "count": row.count,
        "fused": row.fused,
        "ends_at": row.stop or None,
        "pipeline": row.pipeline or None,
        "estimate_us": row.estimate_us,
        "compiled": row.taken,
        "reason": row.reason,
        "emulator": None if checked is None else {"right": checked.right, "sizes": checked.sizes,
                                                  "reason": checked.reason or None},
        "bundle": f"{_name(number, part)}.zip" if part.bundle else None,
    }  # fmt: skip
