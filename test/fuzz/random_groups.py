"""Random calls of `grouped_mm` and `scaled_grouped_mm`."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from drawn_calls import (
    BF16,
    E4M3,
    E5M2,
    F32,
    F64,
    PAIRS,
    TARGETS,
    Drawn,
    extent,
    order_of,
    schedule,
    told,
)
from held_tensors import Held


def groups_of(draw: random.Random, held: Held) -> Drawn:
    """Groups of rows, of columns or of K, as they come or gathered, with a function or scales."""
    from tilewright import grouped_mm

    kind = draw.choice(("rows", "rows", "rows", "columns", "depth", "stack"))
    target = draw.choice(TARGETS)
    scaled = draw.random() < 0.3 and target != "sm_80"
    a_type, b_type, depth = draw.choice([each for each in PAIRS if each[0].is_floating_point])
    if scaled:
        a_type, b_type, depth = draw.choice([each for each in PAIRS if each[0] in (E4M3, E5M2)])
    groups, n, k = draw.choice((1, 2, 3, 5, 9)), extent(draw), extent(draw)
    total = draw.choice((extent(draw, 300), extent(draw), 1))
    m = extent(draw)
    given = _offsets(draw, groups, k if kind == "depth" else total)
    offs = given if kind == "depth" else _in_order(given, total)
    sizes = torch.diff(torch.tensor([0, *offs]))
    gathered = None
    options: dict[str, Any] = {"target": target}
    pipeline = schedule(draw, target, depth, plain=False) if a_type != F32 else None
    options["pipeline"] = pipeline
    if a_type == F32:
        options["precision"] = draw.choice((None, "tf32", "3xtf32", "bf16x9", "ieee"))
    tokens = total
    if kind == "rows" and draw.random() < 0.35:
        tokens = draw.choice((1, 3, extent(draw)))
        gathered = torch.randint(0, tokens, (total,), generator=held.generator).int()
        options["rows"] = gathered
    a_shape = {"rows": [tokens, k], "columns": [groups, m, k]}.get(kind, [m, k])
    b_shape = {"columns": [k, total], "depth": [k, n]}.get(kind, [groups, k, n])
    a_shape = [groups, m, k] if kind == "stack" else a_shape
    a_values, b_values = (
        held.integers(*shape, dtype=dtype)
        for shape, dtype in ((a_shape, a_type), (b_shape, b_type))
    )
    if draw.random() < 0.3:  # which nothing of another group may meet
        a_values, b_values = map(held.sprinkled, (a_values, b_values))
    a = held.tensor(a_values, order_of(a_shape, draw.random() < 0.4))
    b = held.tensor(b_values, order_of(b_shape, draw.random() < 0.6))
    ends = held.tensor(torch.tensor(given, dtype=torch.int32))
    if kind != "stack":
        options["offs"] = ends
    left = a[gathered.long()] if gathered is not None else a
    expected = _grouped_sums(kind, left.double(), b.double(), offs)
    used = offs[-1] if kind in ("rows", "columns") else None
    out_dtype = draw.choice((None, "bf16", "f16", "f32"))
    if scaled:
        return _with_scales(
            draw, held, (kind, a, b, groups, used, expected, sizes), options, out_dtype
        )
    if kind in ("depth", "columns", "rows") and draw.random() < 0.2:
        options["order"] = "heavy"
    options["out_dtype"] = out_dtype
    text = f"grouped {kind} {a_shape} {b_shape} {a_type} {b_type} {given} {told(options)}"
    learns = a_type.itemsize > 1 and draw.random() < 0.25 and kind != "stack"
    if learns and (kind != "depth" or given == _in_order(given, k)):
        return Drawn(
            f"{text} gradients", [partial(_learned, held, kind, a, b, offs, options)], held
        )
    if draw.random() < 0.5:
        function, operands, text2 = _grouped_function(draw, held, kind, expected, groups, sizes)
        options |= {"epilogue": function, "operands": [each for each, _ in operands]}
        expected = function(expected, *(wide for _, wide in operands))
        text += text2
    expected = expected if isinstance(expected, tuple) else (expected,)

    def call() -> list[tuple[Any, torch.Tensor]]:
        found = grouped_mm(a, b, **options)
        found = found if isinstance(found, tuple) else (found,)
        pairs = zip(found, expected, strict=True)
        return [_defined(kind, used, each, wanted) for each, wanted in pairs]

    return Drawn(text, [call], held)


def _learned(
    held: Held,
    kind: str,
    a: torch.Tensor,
    b: torch.Tensor,
    offs: list[int],
    options: dict[str, Any],
) -> list[tuple[Any, torch.Tensor]]:
    """The gradients of both operands, of what has a group."""
    from tilewright import grouped_mm

    mine = [each.detach().requires_grad_() for each in (a, b)]
    wide = [each.detach().double().requires_grad_() for each in (a, b)]
    rows = options.get("rows")
    left = wide[0] if rows is None else wide[0][rows.long().clamp(0, len(a) - 1)]
    found = grouped_mm(*mine, **options)
    expected = _grouped_sums(kind, left, wide[1], offs)
    pair = _defined(kind, None if kind == "depth" else offs[-1], found, expected)
    onward = held.integers(*pair[1].shape, dtype=found.dtype, most=1)
    given = torch.autograd.grad(pair[0], mine, onward)
    wanted = torch.autograd.grad(pair[1], wide, onward.double())
    return list(zip(given, wanted, strict=True))


def _in_order(offs: list[int], extent: int) -> list[int]:
    """Offsets as the nearest that are neither less than the one before nor beyond the rows."""
    ends = [0]
    for each in offs:
        ends.append(min(max(each, ends[-1]), extent))
    return ends[1:]


def _defined(
    kind: str, used: int | None, found: torch.Tensor, wanted: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The part of a result that belongs to a group."""
    if used is None:
        return found, wanted
    if kind == "rows":
        return (found[:used], wanted[:used]) if found.shape == wanted.shape else (found, wanted)
    return (found[:, :used], wanted[:, :used]) if found.shape == wanted.shape else (found, wanted)


def _offsets(draw: random.Random, groups: int, extent: int) -> list[int]:
    how = draw.choice(("random", "random", "one", "last", "even", "short", "none", "wild"))
    if how == "wild":
        return [
            draw.choice((draw.randint(-9, extent + 9), -(2**31), 2**31 - 1)) for _ in range(groups)
        ]
    if how == "one":
        return [extent] * groups
    if how == "last":
        return [0] * (groups - 1) + [extent]
    if how == "none":
        return [0] * groups
    if how == "even":
        return [extent * (each + 1) // groups for each in range(groups)]
    ends = sorted(draw.randint(0, extent) for _ in range(groups))
    return ends if how == "short" else [*ends[:-1], extent]


def _grouped_sums(kind: str, a: torch.Tensor, b: torch.Tensor, offs: list[int]) -> torch.Tensor:
    ends = offs if kind != "depth" else [min(max(each, 0), a.shape[1]) for each in offs]
    parts = [(begin, max(begin, end)) for begin, end in zip([0, *ends], ends, strict=False)]
    if kind == "stack":
        return a @ b
    if kind == "depth":
        return torch.stack([a[:, i:j] @ b[i:j] for i, j in parts])
    if kind == "rows":
        made = [a[i:j] @ b[g] for g, (i, j) in enumerate(parts)]
        rest = torch.zeros(a.shape[0] - offs[-1], b.shape[-1], dtype=F64)
        return torch.cat([*made, rest])
    made = [a[g] @ b[:, i:j] for g, (i, j) in enumerate(parts)]
    rest = torch.zeros(a.shape[1], b.shape[1] - offs[-1], dtype=F64)
    return torch.cat([*made, rest], 1)


def _grouped_function(
    draw: random.Random, held: Held, kind: str, expected: torch.Tensor, groups: int, sizes: Any
) -> tuple[Callable[..., Any], list[tuple[Any, Any]], str]:
    """A function of grouped sums, and its operands, with those of groups spread to rows."""
    *_, rows, columns = expected.shape
    operands: list[tuple[Any, Any]] = []
    kinds = draw.sample(("group", "bias", "factor", "whole"), draw.randint(0, 2))
    for each in kinds:
        along = (rows, 1) if kind == "columns" else (1, columns)
        shape = {
            "group": (groups, *along),
            "bias": (columns,),
            "factor": (rows, 1),
            "whole": (rows, columns),
        }[each]
        if each == "group" and kind in ("depth", "stack"):
            shape = (groups, 1, columns)
        value = held.tensor(held.integers(*shape, dtype=draw.choice((F32, BF16)), most=2))
        wide = value.double()
        if each == "group" and kind in ("rows", "columns"):
            wide = _spread(wide, kind, rows if kind == "rows" else columns, sizes)
        operands.append((value, wide))
    further, relu = draw.random() < 0.25, draw.random() < 0.4

    def function(acc: Any, *given: Any) -> Any:
        made = acc
        for each, value in zip(kinds, given, strict=True):
            made = made * value if each == "factor" else made + value
        made = torch.relu(made) if relu else made
        return (made, acc * 0.5) if further else made

    return function, operands, f" epilogue {kinds} relu={relu} further={further}"


def _spread(wide: torch.Tensor, kind: str, extent: int, sizes: torch.Tensor) -> torch.Tensor:
    """Of each row or column what its group has."""
    dim = 0 if kind == "rows" else 1
    flat = wide[:, 0] if kind == "rows" else wide[:, :, 0].T
    made = flat.repeat_interleave(sizes, dim)
    missing = extent - int(sizes.sum())
    pad = [missing, made.shape[1]] if dim == 0 else [made.shape[0], missing]
    return torch.cat([made, torch.zeros(pad, dtype=F64)], dim)


def _with_scales(
    draw: random.Random, held: Held, what: Any, options: dict[str, Any], out_dtype: str | None
) -> Drawn:
    from tilewright import scaled_grouped_mm

    kind, a, b, groups, used, expected, sizes = what
    options = options | {"output_dtype": out_dtype or "bf16", "use_fast_accum": draw.random() < 0.7}
    given, wides = [], []
    for name, side in (("a", a), ("b", b)):
        of_group = side.dim() == 3 or kind == "depth"
        along = side.shape[-2] if name == "a" else side.shape[-1]
        if name == "a" and options.get("rows") is not None:
            along = len(options["rows"])
        form = draw.choice(("RowWise", "TensorWise", "each"))
        form = form if form != "each" or of_group else "TensorWise"
        shape = {
            "TensorWise": draw.choice(((), (1,))),
            "each": (groups,),
            "RowWise": (groups, along)
            if side.dim() == 3
            else (groups * along if of_group else along,),
        }[form]
        powers = torch.randint(-2, 3, shape, generator=held.generator)
        scale = held.tensor(torch.exp2(powers.float())) if shape else torch.exp2(powers.float())
        given += [scale, "RowWise" if form == "RowWise" else "TensorWise"]
        wide = scale.double()
        if form == "RowWise":
            wide = wide.reshape([groups] * of_group + ([along, 1] if name == "a" else [1, along]))
        elif scale.numel() > 1 or form == "each":
            wide = wide.reshape(groups, 1, 1)
        else:
            wide = wide.reshape(())
        if wide.dim() == 3 and kind in ("rows", "columns"):
            wide = _spread(wide, kind, expected.shape[kind == "columns"], sizes)
        wides.append(wide)
    expected = expected * wides[0] * wides[1]

    def call() -> list[tuple[Any, torch.Tensor]]:
        return [_defined(kind, used, scaled_grouped_mm(a, b, *given, **options), expected)]

    forms = [list(each.shape) if isinstance(each, torch.Tensor) else each for each in given]
    text = f"scaled grouped {kind} {list(a.shape)} {list(b.shape)} {a.dtype} {b.dtype} {forms}"
    return Drawn(f"{text} {told(options)}", [call], held)
