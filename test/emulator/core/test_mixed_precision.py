"""Mixed-precision add, sub and fma (PTX ISA §9.7.5)."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator import launch

NARROW = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"


def run(instruction, a, b, c):
    ptx = (
        HEADER
        + f""".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {{
      .reg .b64 %rd<12>; .reg .b32 %r<4>; .reg .b16 %h<3>; .reg .f32 %f<3>;
      ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb];
      ld.param.u64 %rd3, [pc]; ld.param.u64 %rd4, [pd];
      mov.u32 %r1, %tid.x; mul.wide.u32 %rd5, %r1, 2; mul.wide.u32 %rd6, %r1, 4;
      add.u64 %rd1, %rd1, %rd5; add.u64 %rd2, %rd2, %rd5; add.u64 %rd3, %rd3, %rd6;
      add.u64 %rd4, %rd4, %rd6;
      ld.global.b16 %h1, [%rd1]; ld.global.b16 %h2, [%rd2]; ld.global.f32 %f1, [%rd3];
      {instruction}
      st.global.f32 [%rd4], %f2; ret; }}"""
    )
    d = np.full(32, np.nan, np.float32)
    launch(ptx, "k", grid=(1,), block=(32,), params=[a.view(np.uint16), b.view(np.uint16), c, d])
    return d


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("add.rn.f32.{t} %f2, %h1, %f1;", lambda a, b, c: a + c),
        ("sub.f32.{t} %f2, %h1, %f1;", lambda a, b, c: a - c),
        ("fma.rn.f32.{t} %f2, %h1, %h2, %f1;", lambda a, b, c: a * b + c),
    ],
)
def test_mixed_precision_rounds_once(narrow, text, formula):
    generator = np.random.default_rng(7)
    a, b = (generator.normal(size=32).astype(NARROW[narrow]) for _ in range(2))
    c = generator.normal(size=32).astype(np.float32)
    exact = formula(*(x.astype(np.longdouble) for x in (a, b, c)))
    assert (run(text.format(t=narrow), a, b, c) == exact.astype(np.float32)).all()
