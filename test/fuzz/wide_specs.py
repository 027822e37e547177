"""Random specs of every kind that there is, small enough to run: what `fuzz_pipelines` compiles."""

from __future__ import annotations

import random
from typing import Any

PLAIN = (
    *[("bf16", "bf16", "f32")] * 3,
    *(("f16", "f16", "f32"), ("tf32", "tf32", "f32"), ("e4m3", "e5m2", "f32")),
    *(("e5m2", "e5m2", "f32"), ("s8", "s8", "s32"), ("u8", "s8", "s32"), ("f32", "f32", "f32")),
    *(("f64", "f64", "f64"), ("3xtf32", "3xtf32", "f32"), ("bf16x9", "bf16x9", "f32")),
)
K_PER_MMA = {"bf16": 16, "f16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32,
             "f32": 1, "f64": 1, "3xtf32": 8, "bf16x9": 16}  # fmt: skip
FORMATS = ("mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e3m2", "mxfp4")
ALONE = ("nvfp4", "mxfp8_1x128", "mxfp8_128x128", "mxfp4_1x16")
WEIGHTS = ("s8", "e4m3", "e5m2", "s4", "u4")
TARGETS = (*["sm_100a"] * 5, *["sm_90a"] * 4, "sm_120a", "sm_80", "sm_89", "sm_86")
EXTENTS = (1, 2, 7, 8, 16, 17, 33, 64, 65, 127, 128, 130)
Fields = dict[str, Any]


def random_spec(draw: random.Random) -> tuple[Fields, str]:
    """The fields of a spec, and a chip."""
    kinds = (_plain, _plain, _plain, _groups, _groups, _scaled, _scaled, _of_128, _weights, _rows,
             _open, _two)  # fmt: skip
    fields, target = draw.choice(kinds)(draw)
    beside = random.Random(f"quantised {fields}")  # leaves what else a seed draws as it was
    fields |= _quantised(beside, fields, target) if beside.random() < 0.15 else {}
    if draw.random() < 0.05:
        target = draw.choice(TARGETS)
    return fields, target


def _quantised(draw: random.Random, fields: Fields, target: str) -> Fields:
    """A C in blocks with scales, mostly of what the chip makes and of whole blocks."""
    narrow = target in ("sm_90a", "sm_89") and draw.random() < 0.9
    form = draw.choice(FORMATS[:2] if narrow else (*FORMATS, "nvfp4"))
    block = 16 if form == "nvfp4" else 32
    n = -(-fields["n"] // block) * block if draw.random() < 0.95 else fields["n"]
    ways = ("nearest", "normal") if form == "nvfp4" else ("floor", "ceil", "even", "rceil")
    found = {"c_dtype": form, "n": n, "ldb": 0, "stride_b": 0, "ldc": 0, "stride_c": 0}
    return found | ({"scale_rounding": draw.choice(ways)} if draw.random() < 0.5 else {})


def _extent(draw: random.Random, most: int = 140) -> int:
    return draw.choice((draw.choice(EXTENTS), draw.randint(1, 40), draw.randint(1, most)))


def _sizes(draw: random.Random, of: str) -> Fields:
    most = 24 if of == "f64" else 140
    sizes = {axis: min(most, _extent(draw)) for axis in "mn"}
    return {**sizes, "k": min(most * 2, draw.choice((_extent(draw), draw.randint(100, 400))))}


def _types(draw: random.Random) -> Fields:
    a, b, sums = draw.choice(PLAIN)
    integers = ("s32", "f32", "f16", "bf16")
    floats = ("bf16", "bf16", "f16", "f32", "e4m3", "e5m2")
    c = {"s32": integers, "f64": ("f64",)}.get(sums, floats)
    return {"a_dtype": a, "b_dtype": b, "acc_dtype": sums, "c_dtype": draw.choice(c)}


def _gaps(draw: random.Random, fields: Fields) -> Fields:
    """Now and then gaps between rows, and between the matrices of a stack."""
    found: Fields = {}
    transposed = {"a": fields.get("a_major") == "m", "b": fields.get("b_major") == "n", "c": False}
    shapes = {"a": ("m", "k"), "b": ("n", "k"), "c": ("m", "n")}
    for name, (rows, columns) in shapes.items():
        rows, columns = (columns, rows) if transposed[name] else (rows, columns)
        stacked = fields.get("batch") and fields.get(f"{name}_stacked", True)
        pitch = fields[columns]
        if draw.random() < 0.2:
            pitch = found[f"ld{name}"] = pitch + draw.choice((1, 3, 8, 16, 24))
        if stacked and draw.random() < 0.2:
            found[f"stride_{name}"] = fields[rows] * pitch + draw.choice((1, 8, 16, 32))
    return found


def _plain(draw: random.Random) -> tuple[Fields, str]:
    types = _types(draw)
    fields = {**_sizes(draw, types["a_dtype"]), **types}
    fields |= {"a_major": draw.choice("kkm"), "b_major": draw.choice("kkn")}
    if draw.random() < 0.3:
        fields |= {"batch": draw.randint(1, 3)}
        fields |= {draw.choice(("a_stacked", "b_stacked")): draw.random() < 0.5}
    if types["acc_dtype"] == "f32" and draw.random() < 0.25:
        more = ("f32", "bf16", "f16", "e4m3")
        fields |= {"further": tuple(draw.choices(more, k=draw.randint(1, 2)))}
    return fields | (_gaps(draw, fields) if draw.random() < 0.4 else {}), draw.choice(TARGETS)


def _two(draw: random.Random) -> tuple[Fields, str]:
    types = {**_types(draw), "products": 2}
    fields = {**_sizes(draw, types["a_dtype"]), **types, "b_major": draw.choice("kkn")}
    fields["k"] = min(fields["k"], 200)
    if draw.random() < 0.4:
        fields |= {"groups": draw.choice((1, 2, 5))}
    elif draw.random() < 0.3:
        fields |= {"dynamic_m": True}
    elif draw.random() < 0.5:
        fields |= _gaps(draw, fields)
    return fields, draw.choice(TARGETS)


def _groups(draw: random.Random) -> tuple[Fields, str]:
    types = _types(draw)
    fields = {**_sizes(draw, types["a_dtype"]), **types}
    axis, groups = draw.choice("mmk"), draw.choice((1, 2, 3, 9, 40))
    majors = {"b_major": draw.choice("kn")} if axis == "m" else {"a_major": "m", "b_major": "n"}
    fields |= {"groups": groups, "group_axis": axis, **majors}
    if axis == "m" and draw.random() < 0.35:
        fields["gathered"] = _extent(draw)
    if axis == "k" and draw.random() < 0.4:
        fields["ordered"] = True
    if axis == "m" and draw.random() < 0.2:
        fields["further"] = (draw.choice(("f32", "bf16")),) if types["acc_dtype"] == "f32" else ()
    return fields, draw.choice(TARGETS)


def _scaled(draw: random.Random) -> tuple[Fields, str]:
    a = draw.choice((*FORMATS, *FORMATS, *ALONE))
    b = a if a in ALONE else draw.choice(FORMATS)
    if a.endswith("128"):
        b = draw.choice(ALONE[1:3])
    depth = 128 if a.endswith("128") else 32
    fields = {"m": _extent(draw, 280), "n": _extent(draw, 280), "a_dtype": a, "b_dtype": b}
    fields |= {"k": depth * draw.randint(1, 400 // depth)}
    if a.startswith("mxfp8") and draw.random() < 0.2:
        fields["a_major"] = "m"
    if b.startswith("mxfp8") and draw.random() < 0.2:
        fields["b_major"] = "n"
    fields |= {"c_dtype": draw.choice(("bf16", "f16", "f32"))}
    fields |= {"scale_layout": "linear"} if draw.random() < 0.25 else {}
    if draw.random() < 0.2:
        fields |= {"batch": draw.randint(1, 3)}
        fields |= {draw.choice(("a_stacked", "b_stacked")): draw.random() < 0.5}
    elif draw.random() < 0.3:
        fields |= {"groups": draw.choice((1, 2, 5)), "a_major": "k"}
    elif draw.random() < 0.2:
        fields |= {"further": (draw.choice(("f32", "bf16")),)}
    return fields, draw.choice(("sm_100a", "sm_100a", "sm_120a"))


def _of_128(draw: random.Random) -> tuple[Fields, str]:
    fields = {
        "m": _extent(draw, 280),
        "n": _extent(draw, 280),
        "k": draw.choice((128, 256, 384, 130)),
    }
    fields |= {"a_dtype": draw.choice(("e4m3", "e5m2")), "b_dtype": draw.choice(("e4m3", "e5m2"))}
    fields |= {"c_dtype": draw.choice(("bf16", "f32", "f16"))}
    if draw.random() < 0.3:
        return {**fields, "sums": "two-level"}, draw.choice(("sm_90a", "sm_100a"))
    forms = draw.choice((("1x128", "1x128"), ("1x128", "128x128"), ("128x128", "1x128")))
    fields |= dict(zip(("a_scales", "b_scales"), forms, strict=True))
    if draw.random() < 0.3:
        fields |= {"groups": draw.choice((1, 2, 5))}
    elif draw.random() < 0.3:
        fields |= {"batch": draw.randint(1, 2)}
    return fields, draw.choice(("sm_90a", "sm_100a"))


def _weights(draw: random.Random) -> tuple[Fields, str]:
    group, dtype = draw.choice((0, 32, 64, 128)), draw.choice(WEIGHTS)
    k = group * draw.randint(1, 4) if group else 2 * draw.randint(1, 150)
    group = draw.choice((group, k)) if group else 0
    fields = {"m": _extent(draw), "n": _extent(draw), "k": k, "b_dtype": dtype}
    fields |= {"a_dtype": draw.choice(("bf16", "f16")), "c_dtype": draw.choice(("bf16", "f32"))}
    if group:
        fields |= {"group_size": group, "scale_dtype": draw.choice(("bf16", "f16", "f32"))}
        fields |= {"zero_points": True} if dtype == "u4" and draw.random() < 0.6 else {}
    fields |= {"dynamic_m": True} if draw.random() < 0.3 else {}
    fields |= {"further": ("f32",)} if draw.random() < 0.1 else {}
    targets = (*["sm_100a", "sm_90a"] * 2, "sm_80", "sm_120a", "sm_89")
    return fields, draw.choice(targets)


def _rows(draw: random.Random) -> tuple[Fields, str]:
    """Few rows, which lanes share."""
    dtype = draw.choice(("bf16", "f16", "f32"))
    fields = {"m": draw.randint(1, 5), "n": _extent(draw), "k": 8 * draw.randint(1, 90)}
    fields |= {"a_dtype": dtype, "b_dtype": dtype, "c_dtype": draw.choice(("f32", "bf16"))}
    fields |= {"products": 2} if draw.random() < 0.25 and dtype != "f32" else {}
    if draw.random() < 0.25:
        fields |= {"batch": draw.randint(1, 3)}
        fields |= {draw.choice(("a_stacked", "b_stacked")): draw.random() < 0.5}
    fields |= _gaps(draw, fields) if draw.random() < 0.3 else {}
    return fields, draw.choice(("sm_100a", "sm_90a", "sm_80"))


def _open(draw: random.Random) -> tuple[Fields, str]:
    """Sizes that only a launch says."""
    types = _types(draw)
    fields = {**_sizes(draw, types["a_dtype"]), **types}
    rows, stacks = {"dynamic_m": True}, {"batch": 2, "dynamic_batch": True}
    open_ = draw.choice((rows, rows, stacks, rows | stacks))
    fields |= {**open_, "b_major": draw.choice("kkn")}
    if "dynamic_m" in open_ and draw.random() < 0.4:
        fields |= {
            "least_m": draw.randint(1, fields["m"]),
            "most_m": fields["m"] + draw.randint(0, 40),
        }
    return fields, draw.choice(TARGETS)
