"""Texts of kernels with one op of the dialect `sm`, and the message that refuses one."""

import pytest

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError

FIELDS = {"base_offset": 0, "lbo": 16, "sbo": 1024, "swizzle": '"128B"', "version": 1}
MMA = {
    "a_major": '"k"',
    "a_offset": 0,
    "a_type": '"bf16"',
    "b_major": '"k"',
    "b_offset": 0,
    "b_type": '"bf16"',
    "cta_group": 1,
    "d_type": '"f32"',
    "k": 16,
    "kind": '"f16"',
    "m": 128,
    "n": 64,
}


def attributes(fields):
    typed = (
        f"{name} = {value}{'' if isinstance(value, str) else ' : i64'}"
        for name, value in fields.items()
    )
    return ", ".join(typed)


def descriptor(**fields):
    return f"!sm.descriptor<{{{attributes({**FIELDS, **fields})}}}>"


def mma(**fields):
    made = descriptor()
    return (
        f'%d = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {made}\n'
        f'"sm.mma"(%i, %d, %d, %true) {{{attributes({**MMA, **fields})}}}'
        f" : (i32, {made}, {made}, i1) -> ()"
    )


def scaling_mma(**fields):
    return mma(**{"shift": 8, **fields}).replace("sm.mma", "sm.scaling_mma")


def wgmma(**fields):
    made = descriptor()
    own = {**MMA, "m": 64, "d_type": '"f32"', "first": 0, **fields}
    told = {name: value for name, value in own.items() if name not in ("kind", "cta_group")}
    sums = "!llvm.struct<(f32, f32)>"
    return (
        f'%d = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {made}\n%z = llvm.mlir.zero : {sums}\n'
        f'%s = "sm.wgmma"(%z, %d, %d, %true) {{{attributes(told)}}}'
        f" : ({sums}, {made}, {made}, i1) -> {sums}"
    )


def kernel(body, launch='{\\"entry\\": \\"f\\", \\"schedule\\": {}}', threads=32):
    return f"""
"sm.kernel"() ({{
^bb0(%map: !llvm.ptr):
  %i = arith.constant 0 : i32
  %true = arith.constant true
  %p = "sm.shared_address"(%i) : (i32) -> !llvm.ptr<3>
  {body}
}}) {{cluster = [1, 1, 1], launch = "{launch}", sym_name = "f", threads = {threads} : i64}}
  : () -> ()
"""


def message_of(text):
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, "m.mlir", "lower-to-nvvm")
    return caught.value.message
