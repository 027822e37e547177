"""Vector atom and red (PTX ISA §9.7.13.5, §9.7.13.6), and families that are refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
         "f16x2": np.float16, "bf16x2": ml_dtypes.bfloat16}  # fmt: skip
COMBINE = {"add": np.add, "min": np.fmin, "max": np.fmax}
CASES = [
    ("add", "v2", "f32"), ("add", "v4", "f32"), ("add", "v2", "f16x2"), ("min", "v4", "f16x2"),
    ("max", "v2", "bf16x2"), ("add", "v4", "bf16x2"), ("add", "v8", "f16"), ("max", "v4", "f16"),
    ("min", "v2", "bf16"), ("add", "v8", "bf16"),
]  # fmt: skip


def numbers(rng, rows: int, type_: str, count: int) -> np.ndarray:
    parts = count * (2 if type_.endswith("x2") else 1)
    return (rng.integers(-32, 33, (rows, parts)) / 8).astype(NUMPY[type_])


def vector(prefix: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{first + i}" for i in range(count)) + "}"


def body(opcode: str, type_: str, count: int, *, returns: bool) -> str:
    """Lane i works on place i / 2, so that two lanes meet"""
    wide = 16 if type_ in ("f16", "bf16") else 32
    prefix, size = ("h", 2) if wide == 16 else ("r", 4)
    text = f"""mad.wide.u32 %rd8, %lane, {size * count}, %rd0; shr.u32 %r100, %lane, 1;
      mad.wide.u32 %rd9, %r100, {size * count}, %rd1;
      mad.wide.u32 %rd10, %lane, {size * count}, %rd2;\n"""
    for i in range(count):
        text += f"ld.global.b{wide} %{prefix}{i}, [%rd8+{size * i}];\n"
    target = vector(prefix, 8, count) + ", " if returns else ""
    text += f"{opcode} {target}[%rd9], {vector(prefix, 0, count)};\n"
    for i in range(count if returns else 0):
        text += f"st.global.b{wide} [%rd10+{size * i}], %{prefix}{8 + i};\n"
    return text


def split(count: str) -> int:
    return int(count[1:])


@pytest.mark.parametrize("returns", [False, True], ids=["red", "atom"])
@pytest.mark.parametrize(("operation", "count", "type_"), CASES)
def test_each_element_is_combined_by_itself(run, poisoned, operation, count, type_, returns):
    rng = np.random.default_rng(split(count))
    values = numbers(rng, 32, type_, split(count))
    places = numbers(rng, 16, type_, split(count))
    wanted, seen = places.copy(), np.empty_like(values)
    old = poisoned(values.nbytes, np.uint8)
    for lane in range(32):
        seen[lane] = wanted[lane // 2]
        wanted[lane // 2] = COMBINE[operation](wanted[lane // 2], values[lane]).astype(values.dtype)
    name, flag = ("atom" if returns else "red"), "" if type_ == "f32" else ".noftz"
    space = "" if count == "v4" else ".global"  # generic addresses
    opcode = f"{name}.relaxed.gpu{space}.{operation}{flag}.{count}.{type_}"
    memory = places.view(np.uint8)
    run(body(opcode, type_, split(count), returns=returns), values.view(np.uint8), memory, old)
    assert memory.tobytes() == wanted.tobytes()
    if returns:
        assert old.tobytes() == seen.tobytes()


def test_the_old_values_of_a_vector_may_be_left(run):
    memory = np.zeros(2, np.float32)
    run("mov.b32 %r0, 0f3F800000; atom.relaxed.gpu.add.v2.f32 _, [%rd0], {%r0, %lane};", memory)
    assert memory[0] == 32


FOUR = "{%r0, %r1, %r2, %r3}"
REFUSALS = [
    (f"red.shared.add.v4.f32 [%tile], {FOUR};", "unmodelled", "modifier .shared"),
    ("cvta.shared.u64 %rd0, 0; red.add.v2.f32 [%rd0], {%lane, %lane};", "address-space", "global"),
    ("red.global.max.v2.f32 [%rd0], {%r0, %r1};", "unmodelled", "9.7.13.6"),
    ("red.global.add.v4.u32 [%rd0], {%r0, %r1, %r2, %r3};", "unmodelled", "9.7.13.6"),
    (
        "atom.global.add.v4.f32 {%r0, %r1, %r2, %r3}, [%rd0+8], {%lane, %lane, %lane, %lane};",
        "misaligned",
        "16 bytes",
    ),
    ("multimem.ld_reduce.global.add.f32 %r0, [%rd0];", "unmodelled", "several devices"),
    ("vadd.s32.s32.s32 %r0, %r1, %r2;", "unmodelled", "9.7.18"),
    ("vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;", "unmodelled", "video"),
    ("wmma.load.a.sync.aligned.row.m8n8k32.shared.s8 {%r0}, [%tile];", "unmodelled", "9.7.14.4.3"),
]


@pytest.mark.parametrize(("text", "category", "part"), REFUSALS)
def test_what_is_not_modelled_stops_with_the_reason(trapped, text, category, part):
    trap = trapped(text, np.zeros(64, np.float32))
    assert (trap.category, part in str(trap)) == (category, True), str(trap)
