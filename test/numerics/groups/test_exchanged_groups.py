"""Groups of rows with A and B exchanged, so that rows are the MMA's columns, and tiles of them that
are equally high: every pass, types, rows that TMA addresses and others, groups that end anywhere.

Operands are small integers, so that each group's product in float64 is what C must hold.
"""

import pytest
import torch

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

ROWS = 150
LOADS = "tma-insertion,swizzle-selection"
RING = "pipelining{stages=3},warp-specialization"
STAGED = f"{LOADS},epilogue-staging{{columns=8 buffers=2}}"
BY_GROUP = f"{STAGED},{RING},persistence{{order=grouped group=2 ctas=3}}"
PREFIXES = {
    "tiling": "",
    "tma": "tma-insertion",
    "swizzle": LOADS,
    "staged": STAGED,
    "ring": f"{STAGED},pipelining{{stages=3}}",
    "roles": f"{STAGED},{RING}",
    "direct": f"{LOADS},{RING}",
    "persistent": BY_GROUP,
    "along m": f"{STAGED},{RING},persistence{{order=m ctas=3}}",
}
OTHERS = {
    "curve": f"{STAGED},{RING},persistence{{order=hilbert ctas=3}}",
    "2x1": f"{STAGED},clustering{{shape=2x1 pair=false}},{RING}",
    "1x2": f"{STAGED},clustering{{shape=1x2 pair=false}},{RING}",
    "2x2": f"{LOADS},clustering{{shape=2x2 pair=false}},{RING},persistence{{ctas=8}}",
}
OPERANDS = {
    "bf16": ("bf16", "bf16", "k", "64x96x32"),
    "B by N": ("f16", "f32", "n", "128x32x64"),
    "e4m3": ("e4m3", "bf16", "k", "64x128x64"),
    "tf32": ("tf32", "f32", "k", "64x96x32"),
    "low": ("bf16", "f32", "n", "64x160x64"),
}
"""Types, the major axis of B, and a tile; that of 160 rows is higher than all groups."""
SIZES = {"aligned": (72, 80), "N": (70, 80), "K": (72, 70), "neither": (71, 71)}
"""N and K, and what of them TMA addresses."""
ENDS = {
    "empty": (0, 0, 150, 150, 150),
    "odd": (11, 11, 90, 91, 150),
    "first": (150, 150, 150, 150, 150),
    "disorder": (17, 3, 95, 300, 60),
    "none": (0, 0, 0, 0, 0),
    "few": (1, 2, 3, 4, 149),
}


def check(checked_level, target, passes, operands, size, ends, level=""):
    """All elements of C, those of no group as they were."""
    dtype, c_dtype, major, tile = OPERANDS[operands]
    n, k = SIZES[size]
    spec = MatmulSpec(ROWS, n, k, dtype, dtype, c_dtype, groups=5, b_major=major)
    pipeline = f"tiling{{tile={tile} swap=true}},{passes},{level}".strip(",").replace(",,", ",")
    compiled = compile_matmul(spec, pipeline=pipeline, target=target)
    cubin = compiled.assembled.cubin
    bundle = Bundle(seal(compiled.manifest, compiled.ptx, cubin), compiled.ptx, cubin)
    tensors = make_tensors(bundle.manifest, 0)
    for each in (tensors["a"], tensors["b"]):
        each.copy_(torch.randint(-3, 4, each.shape))
    tensors["offsets"].copy_(torch.tensor(ENDS[ends]))
    wanted, begin = tensors["c"].clone(), 0
    for matrix, end in zip(tensors["b"].double(), ENDS[ends], strict=True):
        end = min(max(end, begin), ROWS)
        rows = tensors["a"][begin:end].double()
        wanted[begin:end] = rows @ matrix.T
        begin = end
    open_device("emulator").launch(bundle, tensors, 0, check=checked_level)
    bits = {2: torch.int16, 4: torch.int32}[wanted.element_size()]
    assert torch.equal(tensors["c"].view(bits), wanted.view(bits))


@pytest.mark.sweep(2)
@pytest.mark.array(
    1,
    prefix=[*PREFIXES, *OTHERS],
    target=["sm_90a", "sm_100a"],
    operands=list(OPERANDS),
    size=list(SIZES),
    ends=list(ENDS),
)
def test_every_pass_takes_exchanged_groups(checked_level, target, prefix, operands, size, ends):
    check(checked_level, target, (PREFIXES | OTHERS)[prefix], operands, size, ends)


@pytest.mark.sweep(2)
@pytest.mark.array(
    1,
    prefix=[name for name in (*PREFIXES, "curve", "in turns") if name != "tma"],
    level=["unit=8 box=16", "unit=16 box=16", "unit=32 box=32", ""],
    operands=list(OPERANDS),
    size=list(SIZES),
    ends=list(ENDS),
)
def test_tiles_of_a_group_are_equally_high_behind_every_pass(
    checked_level, prefix, level, operands, size, ends
):
    """But for loads without a swizzle, whose boxes are no tiles of rows."""
    passes = PREFIXES | OTHERS | {"in turns": f"{BY_GROUP},ping-pong"}
    options = f"{{{level}}}" if level else ""
    level = f"level-groups{options}"
    check(checked_level, "sm_90a", passes[prefix], operands, size, ends, level)
