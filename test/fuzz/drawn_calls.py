"""What random calls are drawn of: types, sizes, layouts and schedules."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from fuzz_specs import COPIES, PASSES, of_clusters
from held_tensors import Held
from random_pipelines import changed, of_nothing

BF16, F16, F32, F64 = torch.bfloat16, torch.float16, torch.float32, torch.float64
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
PAIRS = (
    *[(BF16, BF16, 16)] * 4,
    *((F16, F16, 16), (F32, F32, 8), (F64, F64, 1)),
    *((E4M3, E4M3, 32), (E4M3, E5M2, 32), (E5M2, E4M3, 32), (E5M2, E5M2, 32)),
    *((torch.int8, torch.int8, 32), (torch.uint8, torch.int8, 32), (torch.int8, torch.uint8, 32)),
)
NAMES = {"bf16": BF16, "f16": F16, "f32": F32, "e4m3": E4M3, "e5m2": E5M2}
TARGETS = (*["sm_100a"] * 5, *["sm_90a"] * 5, "sm_120a", "sm_80", "sm_89")
EXTENTS = (1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 65, 96, 127, 129)
ORDERS = ("m", "n", "grouped", "hilbert")


class Drawn(NamedTuple):
    """Calls to make one after another, of which each gives what is found and what is expected."""

    text: str
    calls: list[Callable[[], list[tuple[Any, torch.Tensor]]]]
    held: Held


def extent(draw: random.Random, most: int = 150) -> int:
    """A size of a matrix, often one at which tiles end."""
    return draw.choice((draw.choice(EXTENTS), draw.randint(1, 40), draw.randint(41, most)))


def schedule(draw: random.Random, target: str, k_per_mma: int, plain: bool = True) -> str | None:
    """The text of a pipeline, or None for the choice of the compiler; `plain` has no groups.

    One in four is such as nobody would write: of no schedule, or one with changes."""
    odd = draw.random()
    if odd < 0.1:
        return of_nothing(draw)
    found = _sensible(draw, target, k_per_mma, plain)
    return changed(draw, found) if found and odd < 0.3 else found


def _sensible(draw: random.Random, target: str, k_per_mma: int, plain: bool) -> str | None:
    if draw.random() < 0.35:
        return None
    if k_per_mma == 1:
        return f"tiling{{tile={draw.randint(1, 40)}x{draw.randint(1, 40)}x4 mma=fma}}"
    depth = k_per_mma * draw.randint(1, 4)
    tensor = target in ("sm_100a", "sm_90a") and draw.random() < 0.9
    swap = tensor and plain and draw.random() < 0.4
    columns = 8 * draw.randint(1, 16) if swap else draw.choice((16, 32)) * draw.randint(1, 4)
    rows = draw.choice((64, 128, 256)) if tensor else draw.choice((16, 32, 64, 128))
    first = f"tiling{{tile={rows}x{columns}x{depth}"
    first += " swap=true" if swap else "" if tensor else " mma=mma.sync"
    order = draw.choice((*[""] * 4, *ORDERS))
    first += f" order={order}}}" if order else "}"
    without_tma = target in ("sm_80", "sm_86", "sm_89") or draw.random() < 0.1
    later = ["persistence{ctas=2}", f"persistence{{scheduler=static order={draw.choice(ORDERS)}}}"]
    passes = COPIES if without_tma else (*PASSES, *(later if draw.random() < 0.5 else ()))
    kept = [each for each in passes if draw.random() < (0.15 if "cluster" in each else 0.55)]
    once = {each.partition("{")[0]: each for each in kept}
    if "tma-insertion" not in once and "copy-insertion" not in once and draw.random() < 0.9:
        once = {"tma-insertion": "tma-insertion", **once} if passes is not COPIES else {}
    if not {"warp-specialization", "persistence"} <= set(once) and draw.random() < 0.95:
        once.pop("ping-pong", None)
    splits = plain and draw.random() < 0.3
    if splits and draw.random() < 0.9:
        for each in ("clustering", "persistence", "ping-pong", "epilogue-staging"):
            once.pop(each, None)
    chosen = [first, *once.values()]
    if splits:
        over = draw.choice(("", " over=grid"))
        split = f"split-k{{parts={draw.choice((2, 3, 4))}{over}}}"
        behind = ("tma-insertion", "copy-insertion", "swizzle-selection")
        place = max((i for i, e in enumerate(chosen) if e.partition("{")[0] in behind), default=0)
        chosen.insert(place + 1, split)
    return of_clusters(random.Random(f"clusters {draw.random()}"), ",".join(chosen), target)


def order_of(shape: list[int], transposed: bool) -> tuple[int, ...] | None:
    """The order of dims in memory of matrices that may be stored column by column."""
    dims = list(range(len(shape)))
    return (*dims[:-2], dims[-1], dims[-2]) if transposed else None


def told(options: dict[str, Any]) -> dict[str, Any]:
    """Options as a line of text shows them."""
    return {
        name: list(each.shape) if isinstance(each, torch.Tensor) else each
        for name, each in options.items()
        if name != "offs"
    }
