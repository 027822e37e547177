"""The schema of launch files (schema 1), as data; docs/emulate.md explains each field."""

from __future__ import annotations

from typing import Any

from ..bundles.schema import Integer, ListOf, OneOf, Rule, Text
from .element_types import ELEMENT_TYPES, SCALAR_TYPES
from .rules import AnyNumber, Fields, Keyed, Matching, Number, PowerOfTwo

SCHEMA = 1
MAX_ALIGN_BYTES = 1 << 20
MAX_PARAMETER_BYTES = 32_764
"""PTX ISA §5.1.6.1: kernel parameters have at most this size."""

NAME = Matching(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", "a name of letters, digits, '_', '-', '.'")
HEX = Matching(r"([0-9a-fA-F]{2})*", "pairs of hexadecimal digits")
SIZE = Integer(1)
BYTES = Integer(0)
EXTENT = ListOf(SIZE, 1, 3)

RANDOM_SEED = Integer(0, 2**63 - 1)
CONTENTS = Keyed(
    {
        "random": Fields(
            {"random": RANDOM_SEED, "distribution": OneOf(("normal", "uniform", "integers"))},
            {"low": Number(), "high": Number()},
        ),
        "ramp": Fields({"ramp": Number()}, {"step": Number(), "modulo": Integer(1)}),
        "constant": Fields({"constant": AnyNumber()}),
        "file": Fields({"file": Text()}),
    }
)
TENSOR = Fields(
    {
        "name": NAME,
        "role": OneOf(("input", "output", "inout")),
        "dtype": OneOf(tuple(ELEMENT_TYPES)),
        "shape": ListOf(SIZE, 1, 8),
    },
    {
        "strides": ListOf(Integer(0), 1, 8),
        "align": PowerOfTwo(MAX_ALIGN_BYTES),
        "offset_bytes": Integer(0, MAX_ALIGN_BYTES),
        "contents": CONTENTS,
        "awaited": OneOf((False, True)),
        "whole": OneOf((False, True)),
    },
)
CORNER = ListOf(Integer(-(2**15), 2**15 - 1), 1, 3)
IM2COL = Fields(
    {"lower": CORNER, "upper": CORNER, "channels": Integer(1, 256), "pixels": Integer(1, 1024)}
)


def _map_of(mode: str, rule: Rule) -> Fields:
    return Fields(
        {
            "name": NAME,
            "tensor": NAME,
            "dims": ListOf(Integer(1, 2**32), 1, 5),
            "strides_bytes": ListOf(Integer(0, 2**40 - 1), 0, 4),
            mode: rule,
        },
        {
            "dtype": Text(),
            "offset_bytes": Integer(-(2**60), 2**60),
            "element_strides": ListOf(Integer(1, 8), 1, 5),
            "interleave": Text(),
            "swizzle": Text(),
            "l2_promotion": Text(),
            "oob_fill": Text(),
        },
    )


BOX = ListOf(Integer(1, 256), 1, 5)
TENSOR_MAP = Keyed({"box": _map_of("box", BOX), "im2col": _map_of("im2col", IM2COL)})


def _values(place: dict[str, Any]) -> dict[str, Fields]:
    return {
        "pointer": Fields({"pointer": NAME, **place}, {"offset_bytes": BYTES}),
        "tensor_map": Fields({"tensor_map": NAME, **place}),
        "tensor_map_array": Fields({"tensor_map_array": ListOf(NAME, 1, 256), **place}),
        "pointer_array": Fields({"pointer_array": ListOf(NAME, 1, 4096), **place}),
        "scalar": Fields({"scalar": AnyNumber(), "type": OneOf(tuple(SCALAR_TYPES)), **place}),
        "hex": Fields({"hex": HEX, **place}),
    }


STRUCT = Fields(
    {
        "struct": ListOf(Keyed(_values({"at": BYTES}))),
        "size_bytes": Integer(1, MAX_PARAMETER_BYTES),
    }
)
PARAMETER = Keyed({**_values({}), "struct": STRUCT})
LABEL = Matching(r"[^\s\x00-\x1f][^\x00-\x1f]{0,63}", "a name of at most 64 characters")
BARRIERS = Fields({"name": LABEL, "offset_bytes": BYTES, "count": Integer(1, 4096)})
ROLE = Fields({"name": LABEL, "first_warp": Integer(0, 31), "warps": Integer(1, 32)})
NAMES = Fields({}, {"barriers": ListOf(BARRIERS, 0, 256), "roles": ListOf(ROLE, 0, 32)})
LAUNCH = Fields(
    {
        "entry": Text(),
        "grid": EXTENT,
        "block": EXTENT,
        "tensors": ListOf(TENSOR, 0, 256),
        "parameters": ListOf(PARAMETER, 0, 1024),
    },
    {
        "schema": OneOf((SCHEMA,)),
        "cluster": EXTENT,
        "preferred_cluster": EXTENT,
        "shared_bytes": BYTES,
        "resident": SIZE,
        "tensor_maps": ListOf(TENSOR_MAP, 0, 256),
        "names": NAMES,
    },
)
