"""How fast groups of rows are multiplied, beside torch's own grouped_mm and a dense product.

    python benchmarks/grouped.py compile FOLDER [--target sm_90a] [--shapes 8192x8192x5120x16,…]
    python benchmarks/grouped.py run FOLDER [--rounds 15] [--roofline] [--json PATH]

`compile` needs no GPU. It writes FOLDER/MxNxKxGROUPS.VARIANT.zip for each of the schedules below;
"chosen" is the compiler's. `run` needs no compiler: `runtime` importable as tilewright.runtime,
torch, numpy and cuda-python. Each bundle is run on uniform groups, on ragged ones, and with half of
the rows in one group. Its output is compared with torch's first. Each contender is captured in a
CUDA graph of several calls; contenders take turns, and times are medians. "dense" is the product by
torch of as many rows with one matrix: as many operations, and less to read. Of few rows a group
"copy" moves as many bytes as the matrices have that groups with rows read.

A shape that ends in k, as 2048x1536x65536x128k, has groups of K instead: the gradient of weights.
There "heavy" computes the groups with the most of K first, its time that of finding them included.
One that ends in s has e4m3 with an f32 for each row of A and column of a matrix of B, beside
`torch._scaled_grouped_mm`, and one in t the same with sums of two levels, as torch without fast
accumulation. There "dense" is `torch._scaled_mm` with as many rows and one matrix. One in b has
e4m3 with an f32 for 128 elements of K of each row and of 128x128 elements of a matrix, which torch
has in `scaled_mm` alone: "dense" is that. One in g takes
the rows of groups from fewer tokens by random numbers; there "permuted" is a copy in that order by
torch, then our kernel of plain groups, and "torch" the same copy, then torch's.

`--roofline` also says what tensor cores and DRAM take at least, beside half of torch's time.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from contenders import (
    captured,
    check_known,
    comparison_parser,
    loaded,
    parsed,
    reported,
    timed,
    write_bundle,
)
from roofline_of_groups import Product, limits

SHAPES = (
    "8192x8192x5120x16", "65536x1536x2048x128", "2048x1536x65536x128k", "8192x8192x5120x16s",
    "65536x1536x2048x128s", "65536x1536x2048x128t", "8192x8192x5120x16g",
    "65536x1536x2048x128g", "8192x8192x5120x16b", "65536x1536x2048x128b",
)  # fmt: skip
PERSISTENT = "warp-specialization,persistence{order=grouped group=8}"


def _roles(
    tile: str, stages: int, clustering: str = "", last: str = PERSISTENT, columns: int = 32
) -> str:
    staging = f"epilogue-staging{{columns={columns} buffers=2}}," if columns else ""
    middle = f"clustering{{{clustering} pair=false}}," if clustering else ""
    box = "2d" if "swap" in tile else "3d"
    head = f"tiling{{tile={tile}}},tma-insertion{{box={box}}},swizzle-selection,{staging}{middle}"
    return f"{head}pipelining{{stages={stages}}},{last}"


PING_PONG = f"{PERSISTENT},ping-pong"
LEVEL = f"{PERSISTENT},level-groups{{unit=8 box=32}}"
VARIANTS = {
    "chosen": None,
    "128x256": _roles("128x256x64", 4),
    "128x256-threads": _roles("128x256x64", 4, columns=0),
    "128x256-2x1": _roles("128x256x64", 4, "shape=2x1"),
    "128x256-1x2": _roles("128x256x64", 4, "shape=1x2"),
    "128x192": _roles("128x192x64", 5),
    "128x256-one": _roles("128x256x64", 4, last="warp-specialization"),
    "64x256-one": _roles("64x256x64", 4, last="warp-specialization"),
    "64x256": _roles("64x256x64", 5, columns=64),
    "64x256-threads": _roles("64x256x64", 5, columns=0),
    "64x192": _roles("64x192x64", 6, columns=64),
    "64x192-threads": _roles("64x192x64", 7, columns=0),
    "64x128": _roles("64x128x64", 8, columns=64),
    "ping-pong-64x256": _roles("64x256x64", 4, last=PING_PONG),
    "ping-pong-64x256-2x1": _roles("64x256x64", 4, "shape=2x1", last=PING_PONG),
    "ping-pong-128x128": _roles("128x128x64", 6, last=PING_PONG),
    "ping-pong-128x128-4": _roles("128x128x64", 6, last=PING_PONG.replace("group=8", "group=4")),
    "ping-pong-128x128-16": _roles("128x128x64", 6, last=PING_PONG.replace("group=8", "group=16")),
    "ping-pong-128x128-threads": _roles("128x128x64", 6, last=PING_PONG, columns=0),
    "ping-pong-128x128-2x1": _roles("128x128x64", 6, "shape=2x1", last=PING_PONG),
    "level-256x128": _roles("256x128x64 swap=true", 4, last=LEVEL),
    "level-256x128-16": _roles("256x128x64 swap=true", 4, last=LEVEL.replace("=8 b", "=16 b")),
    "level-128x256-16": _roles("128x256x64 swap=true", 4, last=LEVEL.replace("=8 b", "=16 b")),
    "ping-pong-128x128-1x2": _roles("128x128x64", 6, "shape=1x2", last=PING_PONG),
}
SCALED, BLOCKWISE = ("s", "t"), "b"
PERMUTED, HEAVY = "permuted", "heavy"
OTHERS = {"g": [PERMUTED], "k": [HEAVY]}
SHAPE = re.compile(r"\d+x\d+x\d+x\d+[kstbg]?")
KINDS = ("uniform", "ragged", "skewed", "late", "zipf", "routed")
TOP = 8  # experts of a token, where rows are routed
COPIED_MOST = 8  # rows a group, with fewer of which reading the matrices is all that takes time


def main() -> int:
    options = parse_options()
    return compile_all(options) if options.what == "compile" else run_all(options)


def parse_options() -> argparse.Namespace:
    parser = comparison_parser(
        __doc__, ",".join(SHAPES), of_shapes="MxNxKxGROUPS,…", own_check=True
    )
    parser.add_argument("--only", default="", help="variants, by commas (default all)")
    parser.add_argument("--kinds", default="uniform,ragged,skewed", help=", ".join(KINDS))
    parser.add_argument("--roofline", action="store_true", help="also what the chip allows")
    run = "kinds", "rounds", "json", "roofline"
    options = parsed(parser, compile=("target", "shapes", "only"), run=run)
    if options.only:
        names = *VARIANTS, *itertools.chain(*OTHERS.values())
        check_known(parser, "--only", options.only, names)
    check_known(parser, "--kinds", options.kinds, KINDS)
    for shape in options.shapes.split(","):
        if not SHAPE.fullmatch(shape):
            parser.error(f"--shapes must be MxNxKxGROUPS and a letter of kstbg, got '{shape}'")
    return options


def compile_all(options: argparse.Namespace) -> int:
    """The bundles of all shapes and variants; 1 where one is refused."""
    from tilewright.compiler.driver import choose_pipeline

    options.folder.mkdir(parents=True, exist_ok=True)
    made = []
    for shape in options.shapes.split(","):
        names = options.only.split(",") if options.only else [*VARIANTS]
        for name in [*names, *OTHERS.get(shape[-1], [])]:
            spec, source = source_of(shape.removesuffix("g") if name == PERMUTED else shape)
            if name == HEAVY:
                spec = source = replace(spec, ordered=True)
            pipeline = VARIANTS.get(name)
            in_turns = pipeline and "ping-pong" in pipeline
            if in_turns and spec.sums:
                continue
            pipeline = for_bytes(pipeline, spec) if pipeline else None
            pipeline = pipeline or choose_pipeline(spec, options.target)
            path = options.folder / f"{shape}.{name}.zip"
            made.append(write_bundle(source, path, options.target, pipeline))
    return int(not all(made))


def source_of(shape: str) -> tuple[Any, Any]:
    """The spec of a shape, and what is compiled: with scales the text of spec and epilogue."""
    from tilewright.compiler.importers.linalg_text import LinalgText
    from tilewright.compiler.spec import MatmulSpec
    from tilewright.compiler.spec.epilogue import Epilogue, EpilogueOperand

    m, n, k, groups, kind = sizes_of(shape)
    if kind == BLOCKWISE:
        forms = {"a_scales": "1x128", "b_scales": "128x128"}
        spec = MatmulSpec(m, n, k, "e4m3", "e4m3", groups=groups, **forms)
        return spec, spec
    if kind not in SCALED:
        majors = {"a_major": "m" if kind == "k" else "k", "b_major": "n"}
        axis = "k" if kind == "k" else "m"
        gathered = tokens_of(m, groups) if kind == "g" else 0
        spec = MatmulSpec(m, n, k, **majors, groups=groups, group_axis=axis, gathered=gathered)
        return spec, spec
    operands = (
        EpilogueOperand("%p", "f32", "m", (m,)),
        EpilogueOperand("%q", "f32", "bn", (groups, n)),
    )
    lines = (
        "%y = arith.mulf %x, %p : f32",
        "%z = arith.mulf %y, %q : f32",
        "%c = arith.truncf %z : f32 to bf16",
    )
    made, sums = Epilogue("%x", operands, lines, "%c"), "two-level" if kind == "t" else ""
    spec = MatmulSpec(m, n, k, "e4m3", "e4m3", "bf16", groups=groups, sums=sums)
    spec = replace(spec, epilogue_instructions=made.instructions(spec.outputs))
    return spec, LinalgText(spec.mlir_text(made), "grouped")


def tokens_of(rows: int, groups: int) -> int:
    """Tokens of which each goes to 8 of many experts, or to 2 of few."""
    return rows // (8 if groups >= 64 else 2)


def for_bytes(pipeline: str, spec: Any) -> str:
    """The pipeline with K tiles of as many bytes for operands of 8 bits."""
    return re.sub(r"(tile=\d+x\d+)x64", r"\1x128", pipeline) if spec.a_dtype == "e4m3" else pipeline


def sizes_of(shape: str) -> tuple[int, int, int, int, str]:
    """M, N, K, groups and the letter of what else there is, or none."""
    kind = shape[-1] if shape[-1].isalpha() else ""
    m, n, k, groups = map(int, shape.removesuffix(kind).split("x"))
    return m, n, k, groups, kind


def offsets_of(kind: str, rows: int, groups: int) -> list[int]:
    """Where groups end: of equal size, of random ones, with half of the rows in the first or in the
    last one, of 1, 1/2, 1/3 and so on in a random order, or of tokens that each go to eight random
    ones."""
    import torch

    if kind == "uniform":
        return [rows * (group + 1) // groups for group in range(groups)]
    generator = torch.Generator().manual_seed(1)
    if kind == "routed":
        tokens = range(rows // TOP)
        chosen = [torch.randperm(groups, generator=generator)[:TOP] for _ in tokens]
        counts = torch.bincount(torch.cat(chosen), minlength=groups)
        return counts.cumsum(0).tolist()
    first = rows // 2 if kind == "skewed" else 0
    weights = torch.rand(groups, generator=generator) + 0.05
    if kind == "zipf":
        weights = 1 / (1 + torch.randperm(groups, generator=generator))
    if kind == "late":
        weights[-1] = weights[:-1].sum()
    ends = first + (weights.cumsum(0) / weights.sum() * (rows - first)).long()
    return [*ends[:-1].tolist(), rows]


def run_all(options: argparse.Namespace) -> int:
    """A table of times for each shape and kind of groups."""
    rows = [
        row
        for (shape,), kernels in loaded(options.folder).items()
        for kind in options.kinds.split(",")
        for row in measure(shape, kind, kernels, options)
    ]
    return reported(rows, options.json)


def measure(
    shape: str, kind: str, kernels: dict[str, Any], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Compare every kernel with torch, then time all."""
    import torch

    m, n, k, groups, letter = sizes_of(shape)
    torch.manual_seed(0)
    extent = k if letter == "k" else m
    offs = torch.tensor(offsets_of(kind, extent, groups), dtype=torch.int32, device="cuda")
    made = {BLOCKWISE: blockwise, **dict.fromkeys(SCALED, scaled)}.get(letter, plain)
    operands, contenders, out = made(shape, offs)
    try:
        wanted = contenders["torch"]().float()
    except (KeyError, RuntimeError) as error:  # of a torch that has no such product
        print(f"{shape}: torch: {str(error).splitlines()[0]}", file=sys.stderr)
        contenders.pop("torch", None)
        wanted = group_by_group(operands, out, offs, letter).float()
    right = {}
    for name, kernel in kernels.items():
        contenders[name] = functools.partial(called, kernel, GIVEN.get(name, list), operands, out)
        out.fill_(float("nan"))
        contenders[name]()
        error = (out.float() - wanted).abs().max().item() / wanted.abs().max().item()
        right[name] = error < 2**-7
    graphs = {name: captured(call) for name, call in contenders.items()}
    times = timed(graphs, options.rounds)
    operations, rows = 2 * m * n * k, []
    for name, us in sorted(times.items(), key=lambda pair: pair[1]):
        tera, against = operations / us / 1e6, times.get("torch", math.nan) / us
        mark = "" if right.get(name, True) else "  WRONG"
        print(f"{shape:20} {kind:8} {name:18} {us:9.1f} us {tera:7.1f} TF {against:6.3f}x{mark}")
        row = {"shape": shape, "groups": kind, "name": name, "us": us, "tflops": tera}
        rows.append(row | {"against_torch": against, "right": right.get(name, True)})
    if options.roofline and {"torch", "chosen"} <= times.keys():
        sizes = Product(m, n, k, groups, operands[0].element_size(), letter == "k")
        print(f"{shape:20} {kind:8} {limits(sizes, *graphs['torch'], times)}")
    return rows


def plain(shape: str, offs: Any) -> tuple[Sequence[Any], dict[str, Callable[[], Any]], Any]:
    """What our kernels take, torch's contenders, and where C goes: of bf16."""
    import torch

    m, n, k, groups, letter = sizes_of(shape)
    on_gpu, of_k = {"device": "cuda", "dtype": torch.bfloat16}, letter == "k"
    a = torch.randn(k, m, **on_gpu).mT if of_k else torch.randn(m, k, **on_gpu)
    b = torch.randn(k, n, **on_gpu) if of_k else torch.randn(groups, k, n, **on_gpu)
    whole = torch.empty(m, n, **on_gpu)
    out = torch.empty(groups, m, n, **on_gpu) if of_k else whole
    torchs = getattr(torch.nn.functional, "grouped_mm", None) or torch._grouped_mm
    if letter == "g":
        tokens = tokens_of(m, groups)
        table = torch.randn(tokens, k, **on_gpu)
        rows = torch.randint(0, tokens, (m,), device="cuda", dtype=torch.int32)
        contenders = {
            "torch": lambda: torchs(table.index_select(0, rows), b, offs=offs),
            "dense": lambda: torch.mm(a, b[0], out=whole),
        }
        return (table, b.mT, offs, rows), contenders, out
    contenders = {
        "torch": lambda: torchs(a, b, offs=offs),
        "dense": lambda: torch.mm(a, b if of_k else b[0], out=whole),
    }
    if not of_k and m < COPIED_MOST * groups:
        contenders["copy"] = copied(b, offs)
    return (a, b.mT, offs), contenders, out


def copied(b: Any, offs: Any) -> Callable[[], Any]:
    """A copy that moves as many bytes, to and fro, as matrices of groups with rows have."""
    import torch

    with_rows = int((torch.diff(offs, prepend=offs.new_zeros(1)) > 0).sum())
    half = b[:with_rows].flatten()[: with_rows * b[0].numel() // 2]
    spare = torch.empty_like(half)
    return lambda: spare.copy_(half)


def called(kernel: Any, given: Callable[[Any], Any], operands: Sequence[Any], out: Any) -> None:
    """A call of ours, with what it takes made of the operands."""
    kernel(*given(operands), out=out)


def permuted(operands: Sequence[Any]) -> Sequence[Any]:
    """The operands of plain groups: a copy of the rows that are gathered, and the others."""
    table, b, offs, rows = operands
    return table.index_select(0, rows), b, offs


def ordered(operands: Sequence[Any]) -> Sequence[Any]:
    """The operands, and the groups by how much of K they have."""
    from tilewright.runtime.group_sizes import heavy_first

    a, _, offs = operands
    return *operands, heavy_first(offs, a.shape[1])


GIVEN: dict[str, Callable[[Any], Any]] = {PERMUTED: permuted, HEAVY: ordered}


def scaled(shape: str, offs: Any) -> tuple[Sequence[Any], dict[str, Callable[[], Any]], Any]:
    """The same of e4m3, with factors of rows and columns."""
    import torch

    m, n, k, groups, letter = sizes_of(shape)
    a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
    b = torch.empty(groups, n, k, device="cuda", dtype=torch.float8_e4m3fn)
    for matrix in b:  # one at a time, as f32 takes four times as much
        matrix.copy_(torch.randn(n, k, device="cuda"))
    of_a, of_b = torch.rand(m, device="cuda") + 0.1, torch.rand(groups, n, device="cuda") + 0.1
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    how = {"out_dtype": torch.bfloat16, "use_fast_accum": letter == "s"}
    factors = of_a[:, None], of_b[:1].contiguous()
    contenders = {
        "torch": lambda: torch._scaled_grouped_mm(a, b.mT, of_a, of_b, offs=offs, **how),
        "dense": lambda: torch._scaled_mm(a, b[0].T, *factors, **how),
    }
    return (a, b, offs, of_a, of_b), contenders, out


def blockwise(shape: str, offs: Any) -> tuple[Sequence[Any], dict[str, Callable[[], Any]], Any]:
    """The same with scales of 128 elements of a row, and of 128x128 elements of a matrix."""
    import torch

    m, n, k, groups, _ = sizes_of(shape)
    (a, b, *_), _, out = scaled(f"{m}x{n}x{k}x{groups}s", offs)
    blocks = -(-k // 128)
    of_a = torch.rand(blocks, m, device="cuda") + 0.1
    of_b = torch.rand(groups, -(-n // 128), -(-blocks // 4) * 4, device="cuda") + 0.1

    def dense() -> Any:
        kinds: Any = torch.nn.functional.ScalingType
        recipes = kinds.BlockWise1x128, kinds.BlockWise128x128
        told = (of_a.T, recipes[0], of_b[0].T, recipes[1])
        return torch.nn.functional.scaled_mm(a, b[0].T, *told, output_dtype=torch.bfloat16)

    try:
        dense()
        torch.cuda.synchronize()
        contenders = {"dense": dense}
    except (AttributeError, RuntimeError, ValueError) as error:
        print(f"{shape}: dense: {str(error).splitlines()[0]}", file=sys.stderr)
        contenders = {}
    return (a, b, of_a, of_b, offs), contenders, out


def group_by_group(operands: Sequence[Any], out: Any, offs: Any, letter: str) -> Any:
    """The scaled product by a dense one of f32 for each group."""
    begin = 0
    for group, end in enumerate(offs.tolist()):
        a, b = operands[0][begin:end].float(), operands[1][group].float()
        if letter == BLOCKWISE:
            of_a, of_b = operands[2][:, begin:end].T, operands[3][group]
            a = a * of_a.repeat_interleave(128, 1)[:, : a.shape[1]]
            wide = of_b.repeat_interleave(128, 0)[: len(b)].repeat_interleave(128, 1)
            b = b * wide[:, : b.shape[1]]
        else:
            a, b = a * operands[3][begin:end, None], b * operands[4][group][:, None]
        out[begin:end] = a @ b.T
        begin = end
    return out.clone()


if __name__ == "__main__":
    sys.exit(main())
