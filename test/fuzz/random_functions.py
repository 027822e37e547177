"""Random functions of sums, which give the same bits in float32 as in float64."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import Any

import torch
from held_tensors import Held

BF16, F16, F32, F64 = torch.bfloat16, torch.float16, torch.float32, torch.float64

STEPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "abs": torch.abs,
    "negated": lambda x: -x,
    "halved": lambda x: x / 2,
    "least": lambda x: torch.minimum(x, torch.full_like(x, 17.5)),
    "bounded": lambda x: x.clamp(min=-20.25),
    "leaky": lambda x: torch.where(x > 0, x, x * 0.25),
    "equal": lambda x: torch.where(x == 3, -1.5, x),
    "less": lambda x: torch.where(x < 2.5, x, x + 1),
    "added": lambda x: torch.add(x, x.relu(), alpha=2),
    "rounded": lambda x: x.to(BF16).to(x.dtype),
    "masked": lambda x: x.masked_fill((x > 2) & ~(x > 9), -3.0),
    "either": lambda x: torch.where((x < -1) | (x == 4) ^ torch.isnan(x), x, -x),
    "finite": lambda x: torch.where(torch.isfinite(x), x, torch.sign(x)),
    "inner": lambda x: torch.addcmul(x, torch.ones_like(x), x.clamp(-4, 4), value=0.5),
}
"""Functions of which float32 has every result, of small integers."""


def function_beside(
    draw: random.Random, held: Held, sizes: dict[str, int], **how: Any
) -> tuple[dict[str, Any], Callable[..., Any], str]:
    """A function of the sums as calls take it, with its operands; the same of sums in float64; and
    what it is in words. `sizes` are m, n and, of a stack, how many matrices."""
    duals, stack = how.pop("duals", False), sizes.get("stack", 0)
    function, shapes = drawn_function(draw, sizes["n"], stack, duals, reduces=False, **how)
    given = []
    for shape in shapes.values():
        found = [sizes[each] if isinstance(each, str) else each for each in shape]
        values = held.integers(*found, dtype=draw.choice((F32, F32, BF16, F16)))
        given.append(held.tensor(values) if found else values)
    wide = [each.double() for each in given]
    options = {"epilogue": function, "operands": given}
    return options, lambda *sums: function(*sums, *wide), f" epilogue {function.__doc__}"


def drawn_function(
    draw: random.Random,
    n: int,
    stack: int,
    duals: bool,
    reduces: bool = True,
    without: Collection[str] = (),
    signed_zeros: bool = True,
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A function of the sums, also of those in float64, and the shapes of its operands.

    reduces: whether it may reduce rows. without: names of sizes that no operand has. signed_zeros:
    whether C may have zeros of either sign, of which ReLU gives what it likes.
    """
    kinds = ["bias", "rows", "one", "residual", "column"] + ["matrix"] * (stack > 0)
    shapes_of = {
        "bias": (n,),
        "rows": ("m", 1),
        "one": draw.choice(((), (1,), (1, 1))),
        "residual": (*["stack"] * (stack > 0), "m", n),
        "column": (1, n),
        "matrix": ("stack", 1, 1),
    }
    kinds = [each for each in kinds if not set(without) & set(shapes_of[each])]
    chosen = draw.sample(kinds, draw.randint(0, 3))
    shapes = {f"{number} {kind}": shapes_of[kind] for number, kind in enumerate(chosen)}
    alpha, beta = draw.choice((1.0, 0.5, -2.0)), draw.choice((1.0, 2.0, -0.5))
    relu, clamp = draw.random() < 0.3, draw.random() < 0.2
    further = draw.choice(("", "", "", "sums", "rounded", "amax", "sum", "all"))
    further = further if reduces or further in ("sums", "rounded") else ""
    factors = {"rows", "one", "matrix"}
    doc = f"{alpha}*sums; {chosen}; relu={relu} clamp={clamp} further={further}"
    rounded = draw.choice((BF16, F16, F32))
    names = draw.sample(list(STEPS), draw.choice((0, 0, 1, 2, 3)))
    doc += f" steps={names}"

    def function(*values: Any) -> Any:
        acc = values[0] * 0.5 + values[1] if duals else values[0]
        acc = acc.float() if acc.dtype == torch.int32 else acc
        made = acc * alpha
        for kind, each in zip(chosen, values[1 + duals :], strict=True):
            made = made * each if kind in factors else made + each * beta
        made = torch.relu(made) if relu else made
        made = made.clamp(-64, 64) if clamp else made
        for name in names:
            made = STEPS[name](made)
        made = made if signed_zeros else made + 0.0
        if further in ("", "sums"):
            return (made, acc) if further else made
        if further == "rounded":
            return made, made if made.dtype == F64 else made.to(rounded)
        small = made.clamp(-8, 8)  # of which sums are exact
        others = {"amax": made.abs().amax(-1), "sum": small.sum(-1), "all": small.sum()}
        return made, others[further]

    function.__doc__ = doc
    return function, shapes
