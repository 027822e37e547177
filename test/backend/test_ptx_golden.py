"""The PTX of one kernel a family, as it was when it was last looked at (--update-golden).

A refactor leaves these files as they are; a change of them is a change of the kernels.
"""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.presets import HOPPER_PRESETS
from tilewright.compiler.spec import MatmulSpec

FAMILIES = {
    "sequential": "v2a",
    "pipelined": "v3",
    "specialised": "v4",
    "pair": "v5",
    "persistent": "v6",
    "clc": "kernel8",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_kernel_family(golden, family):
    compiled = compile_matmul(MatmulSpec(520, 512, 640), preset=FAMILIES[family], until="ptx")
    golden(compiled.ptx, f".{family}.ptx")


PING_PONG = HOPPER_PRESETS["h8"].replace("128x128", "64x64").replace("group=8", "group=8 ctas=4")
HOPPER_FAMILIES = {
    "hopper_sequential": HOPPER_PRESETS["h3"],
    "hopper_persistent": HOPPER_PRESETS["h7"],
    "hopper_ping_pong": PING_PONG,
}


@pytest.mark.parametrize("family", HOPPER_FAMILIES)
def test_hopper_kernel_family(golden, family):
    spec = MatmulSpec(520, 512, 640)
    text = HOPPER_FAMILIES[family]
    compiled = compile_matmul(spec, target="sm_90a", pipeline=text, until="ptx")
    golden(compiled.ptx, f".{family}.ptx")
