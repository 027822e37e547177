"""A kernel of a few lines that takes an array and an output, and the trap that it ends with."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
START = """.visible .entry k(.param .u64 a, .param .u64 out) {
  .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<9>; .reg .pred %p<4>;
  ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x;
"""


def run(body: str, a: np.ndarray, out: np.ndarray, declarations: str = "", **options) -> None:
    options = dict(grid=1, block=32) | options
    launch(HEADER + declarations + START + body + " ret; }", "k", params=[a, out], **options)


def trapped(body: str, a: np.ndarray, out: np.ndarray, declarations: str = "", **options) -> Trap:
    with pytest.raises(Trap) as caught:
        run(body, a, out, declarations, **options)
    return caught.value
