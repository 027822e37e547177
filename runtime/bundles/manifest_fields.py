"""The fields of `manifest.json` and their types (docs/manifest.md)."""

from __future__ import annotations

from ..element_types import BLOCKWISE_FORMS, ITEM_BYTES, PADDED_TYPES, SCALE_ROUNDINGS
from ..math_policies import POLICIES
from .manifest_rules import ADDRESSES_BYTES
from .schema import (
    Anything,
    Either,
    Integer,
    ListOf,
    Name,
    Nullable,
    OneOf,
    Record,
    Tagged,
    Text,
)
from .sizes import OF_GRID, SIZES, STACK
from .sizes import SIZE as ROWS_SIZE

MANIFEST_NAME = "manifest.json"
PTX_NAME = "kernel.ptx"
CUBIN_NAME = "kernel.cubin"

RANK_MAX = 6
"""Dims of a tensor, of a stack of blocked scales."""
DTYPES = OneOf(tuple(ITEM_BYTES))
SIZE = Integer(1)
SIZE_OR_NAME = Either(OneOf(SIZES), SIZE)
TRIPLE = ListOf(SIZE, 3, 3)
# CTAs along x or y where a launch says a size (`sizes.py`).
FORMULA = Record(
    {"size": OneOf(OF_GRID), "rows": Integer(1, 2**20), "clusters": SIZE, "ctas": SIZE},
    optional={"most": SIZE, "times": OneOf((STACK,)), "spare": Integer(0, 2**31 - 1)},
)

ROWS = Integer(1, 2**31 - 1)
# Rows of a box where a launch says M: as many as there are, at most so many.
OWN_ROWS = Record({"size": OneOf((ROWS_SIZE,)), "most": Integer(1, 256)})
# From a matrix to the next, of so many rows as a launch says.
BY_ROWS = Record({"size": OneOf((ROWS_SIZE,)), "times": Integer(1, 2**40 - 1)})

TENSOR = Record(
    {
        "name": Text(),
        "role": OneOf(("input", "output")),
        "dtype": DTYPES,
        "shape": ListOf(SIZE_OR_NAME, 0, RANK_MAX),
        "strides": ListOf(Either(BY_ROWS, Integer(0)), 0, RANK_MAX),
    },
    optional={"argument": Record({"index": Integer(0), "transposed": OneOf((False, True))})},
)
TENSOR_MAP = Record(
    {
        "tensor": Text(),
        "dtype": OneOf((*ITEM_BYTES, *PADDED_TYPES)),
        "dims": ListOf(Either(OneOf(SIZES), Integer(1, 2**32)), 1, 5),
        "strides_bytes": ListOf(Either(BY_ROWS, Integer(0, 2**40 - 1)), 0, 4),
        "box": ListOf(Either(OWN_ROWS, Integer(1, 256)), 1, 5),
        "element_strides": ListOf(Integer(1, 1), 1, 5),
        "interleave": OneOf(("none",)),
        "swizzle": OneOf(("none", "32B", "64B", "128B")),
        "l2_promotion": OneOf(("none", "64B", "128B", "256B")),
        "oob_fill": OneOf(("zero",)),
    }
)
POINTER = Record({"tensor": Text(), "alignment_bytes": SIZE})
SIZE_PARAMETER = Record(
    {"size": OneOf(SIZES)}, optional={"value": SIZE, "least": ROWS, "most": ROWS, "multiple": ROWS}
)
OF_MATRIX = (["m", "n"], ["m"], ["n"], [])
AXES = OneOf(tuple([*stack, *axes] for stack in ([], ["b"]) for axes in OF_MATRIX))
WORKSPACE = Record({"tile_bytes": Integer(4, 2**32), "start": OneOf(("any", "zero"))})
PARAMETERS = {
    "tensor_map": TENSOR_MAP,
    "pointer": POINTER,
    "size": SIZE_PARAMETER,
    "workspace": WORKSPACE,
}
EPILOGUE = Record(
    {
        "arguments": ListOf(
            Record({"tensor": Nullable(Text()), "axes": AXES}, optional={"b": Text()}), 1, 64
        ),
        "operations": ListOf(
            Record(
                {
                    "name": Text(),
                    "operands": ListOf(Integer(0), 0, 8),
                    "attributes": Anything(finite=False),
                }
            )
        ),
        "result": Integer(0),
    }
)
REDUCE = Record({"kind": OneOf(("amax", "sum")), "group": Integer(1, 256)})
OUTPUT = Record({"tensor": Text(), "epilogue": EPILOGUE}, optional={"reduce": REDUCE})
WAYS = tuple(way for ways in SCALE_ROUNDINGS.values() for way in ways)
QUANTIZED = Record({"scales": Text(), "block": OneOf((16, 32)), "rounding": OneOf(WAYS)})
FORMS = OneOf(BLOCKWISE_FORMS)
RESOURCES = Record(
    {
        name: Integer(0)
        for name in (
            "registers",
            "spill_store_bytes",
            "spill_load_bytes",
            "static_shared_bytes",
        )
    }
)
BARRIERS = Record({"name": Text(), "offset_bytes": Integer(0), "count": SIZE})
ROLE = Record({"name": Text(), "first_warp": Integer(0, 31), "warps": Integer(1, 32)})
NAMES = Record(
    {"barriers": ListOf(BARRIERS, 0, 256), "roles": ListOf(ROLE, 0, 32)},
    optional={"marks": ListOf(Text(), 1, 256)},
)
ORIGINS = ListOf(Record({"line": SIZE, "from": Nullable(Text())}), 1, 100_000)
MANIFEST = Record(
    {
        "spec": Nullable(Anything()),
        "target": Text(),
        "pipeline": Text(),
        "schedule": Anything(),
        "entry": Name(),
        "grid": ListOf(Either(FORMULA, SIZE), 3, 3),
        "cluster": TRIPLE,
        "block": TRIPLE,
        "dynamic_shared_bytes": Integer(0),
        "workspace_bytes": Integer(0, ADDRESSES_BYTES),
        "tensors": ListOf(TENSOR, 3, 64),
        "parameters": ListOf(
            Tagged("kind", PARAMETERS),
            1,
            128,
        ),
        "epilogue": EPILOGUE,
        "resources": RESOURCES,
        "tools": Anything(),
        "hashes": Record({name: Text() for name in (MANIFEST_NAME, PTX_NAME, CUBIN_NAME)}),
    },
    optional={
        "preferred_cluster": TRIPLE,
        "names": NAMES,
        "arguments": ListOf(Text(), 1),
        "origins": ORIGINS,
        "outputs": ListOf(OUTPUT, 1, 16),
        "quantized": QUANTIZED,
        "blockwise": Record({"a": FORMS, "b": FORMS}),
        "weights": Record({"group": Integer(1)}),
        "terms": Record({"depth": Integer(1, 256)}),
        "math": OneOf(POLICIES),
    },
)
