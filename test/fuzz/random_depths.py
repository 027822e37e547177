"""Random calls of `matmul` of any K, which may be split among CTAs."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import torch
from drawn_calls import BF16, F16, F32, Drawn, extent, schedule, told
from held_tensors import Held
from random_functions import function_beside

DEPTHS = (0, 1, 2, 15, 16, 63, 64, 65, 127, 129, 200, 383, 700)
"""K, about the ends of steps and parts; some leave parts without any."""


def depths(draw: random.Random, held: Held) -> Drawn:
    """Products of one M and N and of several K, each of which the same kernels take."""
    from tilewright import matmul

    target = draw.choice((*["sm_100a", "sm_90a"] * 4, "sm_120a", "sm_80"))
    m, n = extent(draw), extent(draw)
    dtype = draw.choice((BF16, BF16, F16))
    options: dict[str, Any] = {"target": target, "k": "dynamic"}
    options["out_dtype"] = draw.choice((None, "bf16", "f16", "f32"))
    options["pipeline"] = schedule(draw, target, 16)
    c_type = {None: dtype, "bf16": BF16, "f16": F16, "f32": F32}[options["out_dtype"]]
    placed = draw.random() < 0.4
    said, made, function = told(options), "", None
    if draw.random() < 0.5:
        more, function, made = function_beside(draw, held, {"m": m, "n": n})
        options |= more

    def call(k: int) -> list[tuple[Any, torch.Tensor]]:
        values = (held.integers(rows, k, dtype=dtype) for rows in (m, n))
        a, b = (held.tensor(each, (1, 0)) for each in values)
        sums = a.double() @ b.double().T
        expected = sums if function is None else function(sums)
        wanted = expected if isinstance(expected, tuple) else (expected,)
        alone = placed and len(wanted) == 1
        more = {"out": held.output(m, n, dtype=c_type)} if alone else {}
        found = matmul(a, b, **options, **more)
        return list(zip(found if isinstance(found, tuple) else (found,), wanted, strict=True))

    given = [draw.choice(DEPTHS) for _ in range(draw.randint(1, 3))]
    text = f"any K {m}x{n}x{given} {dtype} out={placed} {said}{made}"
    return Drawn(text, [partial(call, k) for k in given], held)
