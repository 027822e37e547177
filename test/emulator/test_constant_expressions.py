"""Constant expressions and vector registers (PTX ISA §4.5.4, §5.4.2)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import PtxSyntaxError, launch

EXPRESSIONS = [
    ("5 - 3", 2), ("(1+2)*3", 9), ("1+2*3", 7), ("1 << 4 | 3", 19), ("7 / 2", 3), ("-7 / 2", -3),
    ("-7 % 3", -1), ("~5 & 0xFF", 250), ("!5 + 1", 1), ("!0", 1), ("3 > 2 && 2 >= 3", 0),
    ("3 != 2 || 0", 1), ("6 ^ 3 == 3", 7), ("2 < 3 ? 10 : 20", 10), ("0 ? 10 : 1 ? 30 : 40", 30),
    ("WARP_SZ * 4", 128), ("(.s64) -8 >> 1", -4), ("100 - 10 - 1", 89), ("2 * (3 + 4) * 5", 70),
    ("1 << 2 + 1", 8), ("+5", 5), ("-(3)", -3), ("-WARP_SZ", -32),
]  # fmt: skip


@pytest.mark.parametrize("text, wanted", EXPRESSIONS)
def test_a_constant_expression_has_the_value_that_c_gives_it(execute, text, wanted):
    got = execute(f"mov.u32 %d, {text};", out=np.int32)
    assert got[0] == wanted


def run(body: str, data: str = "") -> np.ndarray:
    text = f""".version 8.8
.target sm_90a
.address_size 64
{data}
.visible .entry k(.param .u64 out) {{
  .reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .f32 %f<4>;
  .shared .align 16 .b8 tile[4*WARP_SZ];
  ld.param.u64 %rd0, [out]; {body} ret; }}"""
    out = np.zeros(4, np.uint32)
    launch(text, "k", grid=1, block=1, params=[out])
    return out


def test_expressions_size_arrays_initialise_them_and_offset_addresses():
    out = run(
        """ld.global.u32 %r1, [table+4*2]; st.shared.u32 [tile+16*2-4], %r1;
        mov.u32 %r2, tile; ld.shared.u32 %r3, [%r2+7*4]; add.u32 %r3, %r3, 1+1;
        st.global.u32 [%rd0+2*2*2], %r3;""",
        ".global .u32 table[2*2] = {1, 2+3, 4*5, 6};",
    )
    assert out.tolist() == [0, 0, 22, 0]


def test_a_vector_register_is_its_elements():
    out = run(
        """.reg .v4 .b32 %v; .reg .v2 .b32 %w<2>;
        mov.b32 %v.x, 1; mov.b32 %v.g, 2; mov.b32 %v.z, 3; mov.b32 %v.a, 4;
        st.global.v4.b32 [%rd0], %v; ld.global.v2.b32 %w1, [%rd0+8];
        add.u32 %v.r, %w1.x, %w1.y; st.global.b32 [%rd0], %v.x;"""
    )
    assert out.tolist() == [7, 2, 3, 4]


@pytest.mark.parametrize(
    "text, message",
    [
        ("mov.u32 %r1, 4 / (2 - 2);", "a constant is divided by zero"),
        ("mov.u32 %r1, (1 + 2;", "expected `,` or `)`, got `;`"),
        ("mov.u32 %r1, 1 +;", "expected an integer, got `;`"),
        ("mov.u32 %r1, 1.5 * 2;", "expected `,` or `;`, got `*`"),
        ("mov.u32 %r1, 1 ? 2;", "expected `:`, got `;`"),
    ],
)
def test_a_broken_expression_is_a_syntax_error(text, message):
    with pytest.raises(PtxSyntaxError) as caught:
        run(text)
    assert message in str(caught.value)
