"""Random calls of `scaled_mm`, of `weight_only_mm`, and of `matmul` with results in blocks."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import torch
from drawn_calls import BF16, E4M3, E5M2, F16, F32, Drawn, extent, order_of, schedule, told
from held_tensors import Held
from random_functions import function_beside

BLOCKS = {"mxfp8": "BlockWise1x32", "mxfp4": "BlockWise1x32", "nvfp4": "BlockWise1x16"}
BLOCKED = "SWIZZLE_32_4_4"


class Side(NamedTuple):
    """An operand of `scaled_mm`, and what it stands for in float64."""

    rows: torch.Tensor
    scale: torch.Tensor
    recipe: str
    swizzle: str | None
    wide: torch.Tensor


def powers(held: Held, *shape: int, least: int = -2, most: int = 2) -> torch.Tensor:
    """Powers of two in float32."""
    drawn = torch.randint(least, most + 1, shape, generator=held.generator)
    return torch.exp2(drawn.float())


def scaled(draw: random.Random, held: Held) -> Drawn:
    """A product of 8-bit floats with factors, or with scales of blocks."""
    from tilewright import scaled_mm

    form = draw.choice(("factors", "factors", "128", *BLOCKS))
    target = draw.choice(("sm_100a", "sm_90a", "sm_120a", "sm_89"))
    target = draw.choice(("sm_100a", "sm_100a", "sm_120a")) if form in BLOCKS else target
    target = draw.choice(("sm_100a", "sm_90a", "sm_90a", "sm_120a")) if form == "128" else target
    m, n, k = extent(draw), extent(draw), 32 * draw.randint(1, 6)
    k = {"128": 128 * draw.randint(1, 3), "factors": extent(draw, 200)}.get(form, k)
    options: dict[str, Any] = {"target": target, "use_fast_accum": draw.random() < 0.7}
    options["output_dtype"] = draw.choice(("bf16", "f16", "f32", "e4m3", "e5m2"))
    options["pipeline"] = _pipeline(draw, target, 32)
    a, b = _sides(draw, held, form, (m, n, k), target)
    expected = a.wide @ b.wide.T
    if draw.random() < 0.5:
        bias = options["bias"] = held.tensor(held.integers(n, dtype=draw.choice((BF16, F32))))
        expected = expected + bias.double()

    def call() -> list[tuple[Any, torch.Tensor]]:
        given = a.scale, a.recipe, b.scale, b.recipe, a.swizzle, b.swizzle
        return [(scaled_mm(a.rows, b.rows.T, *given, **options), expected)]

    text = f"scaled {form} {m}x{n}x{k} {a.recipe} {b.recipe} {a.swizzle} {told(options)}"
    return Drawn(text, [call], held)


def _pipeline(draw: random.Random, target: str, k_per_mma: int) -> str | None:
    """Mostly the compiler's own choice, which suits scales."""
    return schedule(draw, target, k_per_mma, plain=False) if draw.random() < 0.5 else None


def _sides(
    draw: random.Random, held: Held, form: str, sizes: tuple[int, int, int], target: str
) -> list[Side]:
    m, n, k = sizes
    if form == "factors":
        return [_by_factors(draw, held, name, rows, k) for name, rows in (("a", m), ("b", n))]
    if form == "128":
        forms = draw.choice((("1x128", "1x128"), ("128x128", "1x128"), ("1x128", "128x128")))
        pairs = zip(forms, (m, n), strict=True)
        return [_by_128(held, each, rows, k, target) for each, rows in pairs]
    linear = draw.random() < 0.4
    return [_by_blocks(held, form, rows, k, linear) for rows in (m, n)]


def _by_factors(draw: random.Random, held: Held, name: str, rows: int, k: int) -> Side:
    values = held.tensor(held.integers(rows, k, dtype=draw.choice((E4M3, E5M2))))
    recipe = draw.choice(("TensorWise", "RowWise"))
    if recipe == "TensorWise":
        scale = powers(held)
        return Side(values, scale, recipe, None, values.double() * scale.double())
    scale = held.tensor(powers(held, *((rows, 1) if name == "a" else (1, rows))))
    return Side(values, scale, recipe, None, values.double() * scale.double().reshape(rows, 1))


def _by_128(held: Held, form: str, rows: int, k: int, target: str) -> Side:
    """Scales of 128 elements of K as torch has them, what nobody reads of them NaN."""
    values = held.tensor(held.integers(rows, k, dtype=E4M3, most=2))
    blocks, by_rows = k // 128, form == "1x128"
    own = powers(held, rows if by_rows else -(-rows // 128), blocks)
    spread = own.repeat_interleave(128, 1)
    spread = spread if by_rows else spread.repeat_interleave(128, 0)[:rows]
    wide = values.double() * spread.double()
    given = own.T.contiguous().T if target == "sm_90a" else own
    if not by_rows:
        given = torch.full((len(own), -(-blocks // 4) * 4), torch.nan)
        given[:, :blocks] = own
        given = given.T
    return Side(values, given, f"BlockWise{form}", None, wide)


def _by_blocks(held: Held, form: str, rows: int, k: int, linear: bool) -> Side:
    from tilewright import scales

    made = held.integers(rows, k, dtype=F32, most=2) * powers(held, rows, 1, most=1)
    pair = scales.quantize(made, form)
    wide = torch.as_tensor(scales.dequantize(pair.data, pair.scales, form)).double()
    scale = pair.scales if linear else scales.to_blocked(pair.scales)
    return Side(pair.data, scale, BLOCKS[form], None if linear else BLOCKED, wide)


def quantised(draw: random.Random, held: Held) -> Drawn:
    """A product whose kernel makes blocks with scales of its sums."""
    from tilewright import matmul, scales

    form = draw.choice(("mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp4", "nvfp4"))
    target = draw.choice(("sm_100a", "sm_100a", "sm_120a"))
    target = draw.choice((target, "sm_90a")) if form.startswith("mxfp8") else target
    dtype = draw.choice((BF16, F16, E4M3))
    m, n, k = extent(draw), 32 * draw.randint(1, 5), extent(draw, 200)
    a, b = (held.tensor(held.integers(rows, k, dtype=dtype)) for rows in (m, n))
    options: dict[str, Any] = {"target": target, "out_dtype": form}
    options["pipeline"] = _pipeline(draw, target, 32 if dtype == E4M3 else 16)
    said, made_by = told(options), ""
    sums = a.double() @ b.double().T + 0.0  # no negative zeros, whose bits would count
    if draw.random() < 0.6:
        more, function, made_by = function_beside(draw, held, {"m": m, "n": n}, signed_zeros=False)
        options, sums = options | more, function(sums)
    first, *others = sums if isinstance(sums, tuple) else (sums,)
    pair = scales.quantize(first.float(), form)
    wanted = pair.data, scales.to_blocked(pair.scales)

    def call() -> list[tuple[Any, torch.Tensor]]:
        made = matmul(a, b, **options)
        made, *beside = made if others else (made,)
        pairs = zip((made.data, made.scales), wanted, strict=True)
        found = [(each.view(torch.uint8), other.view(torch.uint8)) for each, other in pairs]
        return found + list(zip(beside, others, strict=True))

    return Drawn(f"quantised {m}x{n}x{k} {dtype} {said}{made_by}", [call], held)


def weights(draw: random.Random, held: Held) -> Drawn:
    """Activations of 16 bits times weights of 8 or 4, of one M or of several."""
    from tilewright import weight_only_mm

    target = draw.choice((*["sm_100a", "sm_90a"] * 2, "sm_80", "sm_120a", "sm_89"))
    dtype = draw.choice(("s8", "e4m3", "e5m2", "s4", "u4", "u4"))
    n, group = extent(draw), draw.choice((0, 32, 64, 128, -1))
    group = -1 if dtype == "u4" and not group else group
    k = extent(draw, 200) if group < 1 else group * draw.randint(1, 4)
    k += k % 2 if dtype in ("s4", "u4") else 0
    options: dict[str, Any] = {"target": target, "pipeline": _pipeline(draw, target, 16)}
    options["out_dtype"] = draw.choice((None, "bf16", "f32", "f16"))
    real, stored = _narrow(held, dtype, n, k)
    scale = None
    if group:
        scale, real = _scales(draw, held, real, k if group < 0 else group, dtype, options)
    if dtype == "s4" or (dtype == "u4" and "zeros" not in options):
        options["b_dtype"] = dtype
    rows = [extent(draw)]
    if draw.random() < 0.4:
        options["m"] = "dynamic"
        rows += [draw.choice((1, 2, 16, 17, 65)) for _ in range(2)]
    said, made, function = told(options), "", None
    if draw.random() < 0.6:
        without = ("m",) if "m" in options else ()
        more, function, made = function_beside(draw, held, {"m": rows[0], "n": n}, without=without)
        options |= more
    a_type = draw.choice((BF16, F16))

    def call(count: int) -> list[tuple[Any, torch.Tensor]]:
        order = order_of([count, k], draw.random() < 0.2)
        a = held.tensor(held.integers(count, k, dtype=a_type), order)
        sums = a.double() @ real.T
        expected = sums if function is None else function(sums)
        wanted = expected if isinstance(expected, tuple) else (expected,)
        found = weight_only_mm(a, stored, scale, **options)
        return list(zip(found if isinstance(found, tuple) else (found,), wanted, strict=True))

    text = f"weights {rows}x{n}x{k} {a_type} {dtype} group={group} {said}{made}"
    return Drawn(text, [lambda count=count: call(count) for count in rows], held)


def _narrow(held: Held, dtype: str, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights in float64, and as they are stored."""
    if dtype in ("s4", "u4"):
        real = held.integers(n, k, dtype=torch.int8) + (5 if dtype == "u4" else 0)
        codes = real & 15
        return real.double(), (codes[:, 0::2] | codes[:, 1::2] << 4).to(torch.uint8)
    types = {"s8": torch.int8, "e4m3": E4M3, "e5m2": E5M2}
    stored = held.integers(n, k, dtype=types[dtype])
    return stored.double(), stored


def _scales(
    draw: random.Random,
    held: Held,
    real: torch.Tensor,
    group: int,
    dtype: str,
    options: dict[str, Any],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales of groups, and the weights that they make; zero points among the options."""
    n, k = real.shape
    count = k // group
    shape = (n,) if count == 1 and draw.random() < 0.5 else (n, count)
    scale = held.tensor(powers(held, *shape).to(draw.choice((BF16, F16, F32))))
    if dtype == "u4" and draw.random() < 0.7:
        zeros = torch.randint(0, 16, shape, generator=held.generator).to(torch.uint8)
        options["zeros"] = zeros
        real = real - zeros.double().reshape(n, count).repeat_interleave(group, 1)
    if count > 1 and draw.random() < 0.5:
        options["group_size"] = group
    return scale, real * scale.double().reshape(n, count).repeat_interleave(group, 1)
