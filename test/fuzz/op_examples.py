"""Write an example of every op of the dialects, cut out of kernels that the compiler makes.

    python test/fuzz/op_examples.py          # adds ops that have none, drops those that are gone
    python test/fuzz/op_examples.py --all    # anew for every op

It compiles random products (`read_back.py`) until every op has been seen. The example of an op is a
function with the op, or where that cannot stand alone with what it needs around it, whose arguments
are what these take. The pages of docs/dialects/ show them, and `test/dialects/test_op_examples.py`
parses and verifies each.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from read_back import drawn

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import PassEvent
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects import pipe, sm, tile
from tilewright.dialects.context import lent_context
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir
from tilewright.tools.pages.op_examples import example_of, is_ours, read_examples

SOURCES = Path(__file__).parent / "op_sources"
FOLDER = Path(__file__).parent.parent.parent / "docs/dialects/examples"
SEEDS_MAX = 3000
TRIES = 4
"""Places of a kernel that are tried for an op."""
INSIDE = {"tile.narrow_mma", "tile.take_columns"}
"""Ops that a pass makes and takes away again, so that no kernel between passes has any."""
LOWERED = "lower-to-nvvm"
"""Behind it no op of ours is left."""


CHIPS = ("sm_100a", "sm_90a")
REST = "tma-insertion,swizzle-selection,pipelining{stages=2}"
LOADED = f"tiling,{REST}"
SHARED = LOADED.replace("pipelining", "clustering{shape=2x1 pair=false},pipelining")
HANGING = f"tiling{{tile=128x64x64}},{SHARED.partition(',')[2]},warp-specialization,edge-boxes"
HELD = "tiling,tma-insertion,swizzle-selection,epilogue-staging{columns=32 vectors=registers}"
PAIRS = (
    "tiling,tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true},pipelining{stages=2}"
)
EITHER = SHARED.replace("shape=2x1 pair=false", "shape=4x1 fallback=2x1")
SPLITS = ("3xtf32", "bf16x9")
DUAL = {"n": 4096, "k": 512, "products": 2}
WEIGHTS = {"n": 4096, "k": 1024, "b_dtype": "s8", "group_size": 128, "scale_dtype": "bf16"}
SCALED = {"m": 4096, "n": 4096, "k": 1024, "a_dtype": "e4m3", "b_dtype": "e4m3"} | {
    "a_scales": "1x128",
    "b_scales": "128x128",
}
EXACT = {"m": 256, "n": 256, "k": 128, "a_dtype": "tf32", "b_dtype": "tf32", "c_dtype": "f32"}
ORDERED = {"m": 512, "n": 512, "k": 512, "a_major": "m", "b_major": "n"} | {
    "groups": 4,
    "group_axis": "k",
    "ordered": True,
}
PERMUTES = "warp-specialization,persistence{order=hilbert ctas=2},ping-pong"
AHEAD = "tiling,tma-insertion,swizzle-selection,epilogue-staging{ahead=2},pipelining{stages=2}"
APART = (
    "tiling{tile=256x128x64},tma-insertion,swizzle-selection,"
    "epilogue-staging{columns=32 vectors=ahead by=warpgroup},pipelining{stages=2}"
)
KEPT = (SOURCES / "kept.mlir").read_text()
RESIDUAL = (SOURCES / "residual.mlir").read_text()
BIAS = (SOURCES / "bias.mlir").read_text()
IN_TURNS = "warp-specialization,persistence{ctas=3},ping-pong"
ANY_DEPTH = {"m": 512, "n": 512, "k": 256, "a_major": "m", "b_major": "n", "dynamic_k": True}
LISTED: tuple[tuple[Any, dict[str, Any]], ...] = (
    (ANY_DEPTH, {"pipeline": "tiling,tma-insertion,swizzle-selection,split-k{over=grid}"}),
    ({"m": 512, "n": 512, "k": 256}, {"pipeline": EITHER}),
    *(({"m": 512, "n": 512, "k": 256}, {"preset": name}) for name in ("v6", "kernel5", "kernel8")),
    *(({"m": 4096, "n": 4096, "k": 512}, {"target": chip}) for chip in CHIPS),
    *((RESIDUAL, {"target": chip}) for chip in CHIPS),
    *((DUAL | {"m": 4096}, {"target": chip}) for chip in CHIPS),
    (DUAL | {"m": 1}, {"target": "sm_90a"}),
    *((WEIGHTS | {"m": m}, {"target": chip}) for m in (16, 4096) for chip in CHIPS),
    (SCALED, {"pipeline": PAIRS}),
    *((SCALED, {"target": chip}) for chip in CHIPS),
    ({"m": 8192, "n": 8192, "k": 5120, "groups": 16}, {"target": "sm_90a"}),
    *(
        ({"m": 1024, "n": 1024, "k": 512, "groups": 4, "gathered": 2048}, {"target": chip})
        for chip in CHIPS
    ),
    (DUAL | {"m": 1024, "groups": 4, "gathered": 2048}, {"target": "sm_90a"}),
    *((EXACT, {"pipeline": f"tiling{{mma=tcgen05.mma+{how}}},{REST}"}) for how in SPLITS),
    *(
        (EXACT, {"target": "sm_80", "pipeline": f"tiling{{mma=mma.sync+{how}}},copy-insertion"})
        for how in SPLITS
    ),
    ({"m": 300, "n": 512, "k": 1000}, {"pipeline": f"{PAIRS},skip-zeros"}),
    (DUAL | {"m": 512, "k": 1000}, {"pipeline": f"{PAIRS},skip-zeros"}),
    (DUAL | {"m": 512, "k": 1000}, {"target": "sm_90a", "pipeline": f"{LOADED},skip-zeros"}),
    ({"m": 64, "n": 96, "k": 128}, {"pipeline": f"{LOADED},warp-specialization,instrument"}),
    ({"m": 512, "n": 512, "k": 256, "c_dtype": "nvfp4"}, {"target": "sm_120a"}),
    ({"m": 512, "n": 512, "k": 256, "c_dtype": "nvfp4"}, {"target": "sm_100a", "pipeline": LOADED}),
    *((ORDERED, {"target": chip}) for chip in CHIPS),
    *((KEPT, {"target": chip}) for chip in (*CHIPS, "sm_80")),
    (RESIDUAL, {"target": "sm_90a", "pipeline": f"{AHEAD},{PERMUTES}"}),
    (RESIDUAL, {"target": "sm_90a", "pipeline": f"{AHEAD},warp-specialization,slot-reuse"}),
    ({"m": 64, "n": 96, "k": 128}, {"pipeline": f"{LOADED},warp-specialization,k-rotation"}),
    ({"m": 200, "n": 90, "k": 128}, {"pipeline": HANGING}),
    (RESIDUAL, {"target": "sm_80"}),
    (BIAS, {"target": "sm_90a", "pipeline": APART}),
    (
        {"m": 512, "n": 512, "k": 256, "groups": 4},
        {"target": "sm_90a", "pipeline": f"{LOADED},warp-specialization,level-groups{{box=8}}"},
    ),
    (
        {"m": 512, "n": 512, "k": 256, "groups": 4},
        {"target": "sm_90a", "pipeline": f"{LOADED},{PERMUTES}"},
    ),
    (
        {"m": 512, "n": 512, "k": 256, "dynamic_m": True},
        {"pipeline": f"{PAIRS},warp-specialization"},
    ),
    (
        ORDERED | {"ordered": False},
        {"target": "sm_90a", "pipeline": f"{LOADED.replace('2', '3')},{IN_TURNS}"},
    ),
    (
        {"m": 512, "n": 512, "k": 256},
        {"target": "sm_90a", "pipeline": f"{SHARED},warp-specialization"},
    ),
    (
        {"m": 512, "n": 512, "k": 256},
        {"pipeline": f"{SHARED},warp-specialization,persistence{{ctas=2}},expand-loops{{early=2}}"},
    ),
    (
        {"m": 512, "n": 512, "k": 256},
        {"pipeline": "tiling,tma-insertion,swizzle-selection,expand-loops{reads=matrices}"},
    ),
    (
        {"m": 512, "n": 500, "k": 256, "b_major": "n", "dynamic_m": True},
        {"target": "sm_90a", "pipeline": f"{LOADED},warp-specialization"},
    ),
    (BIAS, {"target": "sm_90a", "pipeline": f"{HELD},pipelining{{stages=2}}"}),
    (SCALED | {"b_scales": "1x128"}, {"target": "sm_90a"}),
)
"""Products that are drawn seldom or never."""


def sources() -> Iterator[tuple[Any, dict[str, Any]]]:
    """What is compiled, a spec's fields or a text of linalg, and how."""
    for fields, options in LISTED:
        yield fields, options
    for seed in range(SEEDS_MAX):
        given, options = drawn(seed)
        yield given, options


def collect(wanted: set[str], found: dict[str, str]) -> None:
    """Find an example of each op that is wanted, as far as the sources have one."""
    for number, (given, options) in enumerate(sources()):
        for text in _printed(given, options):
            _look(text, wanted - found.keys(), found)
        missing = sorted(wanted - found.keys())
        print(f"{number}: {len(missing)} are missing:", *missing[:12], file=sys.stderr)
        if not missing:
            return


def _printed(given: Any, options: dict[str, Any]) -> list[str]:
    """The IR behind each pass, up to the one that refuses the source."""
    printed: list[str] = []

    def listen(event: PassEvent) -> None:
        if event.name != LOWERED:
            printed.append(event.ir())

    with contextlib.suppress(CompileError):
        is_text = isinstance(given, str)
        source = LinalgText(given, "random.mlir") if is_text else MatmulSpec(**given)
        compile_matmul(source, **options, until="mlir", observer=listen)
    return printed


def _look(text: str, missing: set[str], found: dict[str, str]) -> None:
    """Take from a module's text an example of each op that is missing."""
    names = {name for name in missing if f'"{name}"' in text}
    if not names:
        return
    tries = dict.fromkeys(names, TRIES)
    with lent_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        for op in _ops(module.operation):
            if op.name in found or not tries.get(op.name):
                continue
            tries[op.name] -= 1
            made = example_of(op)
            if made is not None:
                found[op.name] = made


def _ops(operation: ir.Operation) -> Iterator[ir.Operation]:
    for region in operation.regions:
        for block in region:
            for op in block:
                if is_ours(op.operation.name):
                    yield op.operation
                yield from _ops(op.operation)


def main() -> int:
    """1 where an op has no example."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="anew for every op")
    options = parser.parse_args()
    dialects = {"tile": tile.Tile, "pipe": pipe.Pipe, "sm": sm.Sm}
    names = {op.OPERATION_NAME for each in dialects.values() for op in each.operations} - INSIDE
    kept = {} if options.all else {n: t for n, t in read_examples(FOLDER).items() if n in names}
    examples = dict(kept)
    collect(names, examples)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for dialect in dialects:
        parts = [examples[name] for name in sorted(examples) if name.startswith(f"{dialect}.")]
        head = f"// Examples of ops of `{dialect}`, written by `python test/fuzz/op_examples.py`."
        texts = [head, *(part.strip() for part in parts)]
        (FOLDER / f"{dialect}.mlir").write_text("\n\n".join(texts) + "\n")
    missing = sorted(names - examples.keys())
    print(*missing, sep="\n")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
