"""How fast products with narrow weights are, beside torch's and Triton's, and the bytes they move.

    python benchmarks/weight_only.py compile FOLDER [--target sm_90a] [--shapes 16x4096x4096,…]
                                     [--weights s4-128,…] [--pipelines FILE] [--candidates N]
                                     [--jobs 2]
    python benchmarks/weight_only.py run FOLDER [--rounds 15] [--without-torch] [--json PATH]

`compile` needs no GPU. It writes FOLDER/MxNxK.WEIGHTS.VARIANT.zip: WEIGHTS are a type and the
elements of K that share a scale, such as s4-128, or "all"; VARIANT is "chosen", the compiler's
schedule, one of FILE, or the tile of a schedule whose estimate is little longer. `run` needs no
compiler: only `runtime` as tilewright.runtime, torch, numpy and cuda-python. Each result is
compared with the product of dequantized weights first. torch's contenders are its own kernel for
such weights, where it has one on this GPU, and the bf16 product of weights that were dequantized
before. Each contender is captured in a CUDA graph of one call for each of several weights, which
exceed L2 three times; contenders take turns, and times are medians. The last column is what reading
weights and scales alone makes of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from contenders import captured, comparison_parser, measured, parsed, timed, write_bundle

SHAPES = tuple(
    f"{m}x{n}x{k}"
    for n, k in ((4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336))
    for m in (1, 16, 64)
)
WEIGHTS = ("s4-128", "u4-128", "s8-all", "e4m3-all")
TYPES = {"s8": "int8", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "s4": "uint8", "u4": "uint8"}
TOLERANCE = 2.0**-6  # of the largest element, in bf16
L2_MULTIPLE, SETS = 3, (4, 24)


def main() -> int:
    options = parse_options()
    return (
        compile_all(options) if options.what == "compile" else measured(options, measure, parts=2)
    )


def parse_options() -> argparse.Namespace:
    parser = comparison_parser(__doc__, ",".join(SHAPES))
    parser.add_argument("--weights", default=",".join(WEIGHTS), help="TYPE-GROUP,…")
    parser.add_argument("--pipelines", type=Path, metavar="FILE", help="NAME PIPELINE on each line")
    parser.add_argument(
        "--candidates", type=int, default=0, metavar="N", help="the next N by estimate, too"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes that compile (default 2)")
    parser.add_argument(
        "--without-torch", action="store_true", help="but for bf16: its own take long of many rows"
    )
    compiled = "target", "shapes", "weights", "pipelines", "candidates", "jobs"
    return parsed(parser, compile=compiled, run=("rounds", "json", "without_torch"))


def compile_all(options: argparse.Namespace) -> int:
    """The bundles of all shapes and weights; 1 where a chosen one is refused."""
    options.folder.mkdir(parents=True, exist_ok=True)
    pipelines: dict[str, str | None] = {"chosen": None}
    if options.pipelines:
        text = Path.read_text(options.pipelines)
        lines = text.splitlines()
        pipelines |= dict(line.split(None, 1) for line in lines if line.strip())
    tasks = [
        (shape, weights, name, pipeline, options.target, options.folder)
        for shape in options.shapes.split(",")
        for weights in options.weights.split(",")
        for name, pipeline in (pipelines | _candidates(shape, weights, options)).items()
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        return int(any(pool.map(_compile, tasks)))


def _candidates(shape: str, weights: str, options: argparse.Namespace) -> dict[str, str]:
    """Pipelines of the schedules behind the chosen one, by tile."""
    from tilewright.compiler.schedule.kinds.weight_schedule import estimates
    from tilewright.compiler.schedule.search.choice import target_for

    spec = _spec(shape, weights)
    found = estimates(spec, target_for(spec, options.target))[1 : 1 + options.candidates]
    schedules = [each.schedule for each in found]
    names = (
        f"{'x'.join(map(str, each.tile))}-w{'x'.join(map(str, each.warps))}-s{each.stages}"
        f"-k{each.parts}"
        for each in schedules
    )
    return {name: each.pipeline() for name, each in zip(names, schedules, strict=True)}


def _spec(shape: str, weights: str) -> Any:
    """The spec of a shape and its weights."""
    from tilewright.compiler.spec import MatmulSpec

    m, n, k = map(int, shape.split("x"))
    dtype, group = _read_weights(weights, k)
    zeros = {"zero_points": True} if dtype == "u4" else {}
    return MatmulSpec(m, n, k, "bf16", dtype, group_size=group, scale_dtype="bf16", **zeros)


def _compile(task: tuple[Any, ...]) -> bool:
    """Whether a schedule that the compiler chose was refused."""
    shape, weights, name, pipeline, target, folder = task
    path = folder / f"{shape}.{weights}.{name}.zip"
    made = write_bundle(_spec(shape, weights), path, target, pipeline)
    return name == "chosen" and not made


def _read_weights(weights: str, k: int) -> tuple[str, int]:
    dtype, group = weights.split("-")
    return dtype, k if group == "all" else int(group)


def measure(
    shape: str, weights: str, kernels: dict[str, Any], options: argparse.Namespace
) -> list[Any]:
    """Compare every contender with the dequantized product, then time all."""
    import torch

    m, n, k = map(int, shape.split("x"))
    dtype, group = _read_weights(weights, k)
    torch.manual_seed(0)
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    one = Weights.drawn(dtype, n, k, group)
    wide = one.dequantized()
    wanted = a.float() @ wide.T
    count = _count(one.bytes)
    sets = [one, *(one.copy() for _ in range(count - 1))]
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    calls: dict[str, list[Callable[[], Any]]] = {
        name: [lambda kernel=kernel, each=each: kernel(a, *each.tensors, out=c) for each in sets]
        for name, kernel in kernels.items()
    }
    calls |= _torchs(a, one, wide, options.without_torch)
    right = {}
    for name, several in calls.items():
        c.fill_(float("nan"))
        error = (several[0]().float() - wanted).abs().max().item() / wanted.abs().max().item()
        right[name] = error < TOLERANCE
    times = timed({name: captured(*several) for name, several in calls.items()}, options.rounds)
    rows = []
    for name, us in sorted(times.items(), key=lambda pair: pair[1]):
        rate, mark = one.bytes / us / 1e6, "" if right[name] else "  WRONG"
        against = times["bf16"] / us
        label = f"{shape:16} {weights:9} {name:28}"
        print(f"{label} {us:8.2f} us {against:6.2f}x of bf16 {rate:6.2f} TB/s{mark}")
        row = {"shape": shape, "weights": weights, "name": name, "us": us, "tb_s": rate}
        rows.append(row | {"against_bf16": against, "right": right[name]})
    return rows


class Weights:
    """Weights [n, k] of a type as a kernel takes them, with their scales and zero points."""

    def __init__(self, dtype: str, group: int, tensors: list[Any]):
        self.dtype, self.group, self.tensors = dtype, group, tensors

    @staticmethod
    def drawn(dtype: str, n: int, k: int, group: int) -> Weights:
        """Random ones."""
        import torch

        if dtype in ("s4", "u4"):
            stored = torch.randint(0, 256, (n, k // 2), device="cuda", dtype=torch.uint8)
        elif dtype == "s8":
            stored = torch.randint(-127, 128, (n, k), device="cuda", dtype=torch.int8)
        else:
            stored = torch.randn(n, k, device="cuda").to(getattr(torch, TYPES[dtype]))
        scales = (torch.rand(n, k // group, device="cuda") + 0.5).bfloat16() / 64
        zeros = torch.randint(0, 16, (n, k // group), device="cuda", dtype=torch.uint8)
        return Weights(dtype, group, [stored, scales, *([zeros] if dtype == "u4" else [])])

    @property
    def bytes(self) -> int:
        """Of all that is read for one product but A."""
        return sum(each.nbytes for each in self.tensors)

    def copy(self) -> Weights:
        """The same in other memory."""
        return Weights(self.dtype, self.group, [each.clone() for each in self.tensors])

    def dequantized(self) -> Any:
        """The weights in f32."""
        import torch

        stored, scales, *zeros = self.tensors
        values = stored.float()
        if self.dtype in ("s4", "u4"):
            pair = torch.stack([stored & 15, stored >> 4], -1).flatten(1)
            values = pair.float() - 16.0 * ((pair >= 8) & (self.dtype == "s4"))
        values = values.view(len(stored), -1, self.group)
        for each in zeros:
            values = values - each.float()[:, :, None]
        return (values * scales.float()[:, :, None]).flatten(1)


def _torchs(a: Any, weights: Weights, wide: Any, alone: bool) -> dict[str, list[Callable[[], Any]]]:
    """The bf16 product, and unless it is to be `alone` torch's own of such weights, if it has one
    here; why not is said."""
    import torch

    half = wide.bfloat16()
    dense = [half, *(half.clone() for _ in range(_count(half.nbytes) - 1))]
    found = {"bf16": [lambda each=each: torch.mm(a, each.T) for each in dense]}
    own = {"s4": _int4_of_torch, "u4": _int4_of_torch, "s8": _int8_of_torch}.get(weights.dtype)
    if own is None or alone:
        return found
    try:
        calls = own(a, weights)
        calls[0]()
        torch.cuda.synchronize()
    except (RuntimeError, NotImplementedError, AttributeError) as error:
        print(f"torch has no {weights.dtype}: {str(error).splitlines()[0]}", file=sys.stderr)
        return found
    return found | {"torch": calls}


def _int4_of_torch(a: Any, weights: Weights) -> list[Callable[[], Any]]:
    """torch._weight_int4pack_mm: (u - 8) * scale + zero, its packing of K by 16 times 8 tiles."""
    import torch

    stored, scales, *zeros = weights.tensors
    codes = stored if weights.dtype == "u4" else stored ^ 0x88
    swapped = (codes >> 4) | (codes << 4)  # its first element is in the high half
    offset = 8.0 - zeros[0].float() if zeros else torch.zeros_like(scales, dtype=torch.float32)
    both = torch.stack([scales.float(), offset * scales.float()], -1).transpose(0, 1)
    packed = torch._convert_weight_to_int4pack(swapped, 8)
    both = both.contiguous().bfloat16()
    count = _count(packed.nbytes + both.nbytes)
    sets = [(packed.clone(), both.clone()) for _ in range(count)]
    return [
        lambda each=each: torch._weight_int4pack_mm(a, each[0], weights.group, each[1])
        for each in sets
    ]


def _int8_of_torch(a: Any, weights: Weights) -> list[Callable[[], Any]]:
    """torch._weight_int8pack_mm, of one scale a row."""
    import torch

    sets = [weights.copy() for _ in range(_count(weights.bytes))]
    return [
        lambda each=each: torch._weight_int8pack_mm(a, each.tensors[0], each.tensors[1][:, 0])
        for each in sets
    ]


def _count(size: int) -> int:
    """How many weights of so many bytes exceed L2 three times."""
    import torch

    wanted = L2_MULTIPLE * torch.cuda.get_device_properties(0).L2_cache_size
    return min(max(-(-wanted // size), SETS[0]), SETS[1])


if __name__ == "__main__":
    sys.exit(main())
