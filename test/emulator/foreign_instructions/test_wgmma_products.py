"""wgmma.mma_async, fence, commit_group and wait_group (PTX ISA §9.7.15), element by element."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator import Trap

TILE = 0x400
"""Shared offset of the tile: the first variable of the kernel, aligned to 1024."""
SPANS = {"none": 16, "128B": 128, "64B": 64, "32B": 32}
CODES = {"none": 0, "128B": 1, "64B": 2, "32B": 3}
NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "u8": np.uint8,
    "f32": np.float32, "s32": np.int32,
}  # fmt: skip
FILL = """mov.u32 %r150, %tid.x; shl.b32 %r150, %r150, 4;
F: cvt.u64.u32 %rd20, %r150; add.u64 %rd20, %rd20, %rd0; add.u32 %r151, %r150, %tile;
ld.global.v4.b32 {%r152, %r153, %r154, %r155}, [%rd20];
st.shared.v4.b32 [%r151], {%r152, %r153, %r154, %r155};
add.u32 %r150, %r150, 2048; setp.lt.u32 %p7, %r150, 32768; @%p7 bra F;
fence.proxy.async.shared::cta; bar.sync 0;
setp.ne.u32 %p0, 0, 0; setp.eq.u32 %p1, 0, 0;
"""
FENCE, COMMIT = "wgmma.fence.sync.aligned;\n", "wgmma.commit_group.sync.aligned;\n"
DONE = COMMIT + "wgmma.wait_group.sync.aligned 0;\n"


def element_offset(mode: str, transposed: bool, size: int, strides, r, k):
    """Byte of element (r, k) in the canonical layouts, without the swizzle; also of arrays"""
    (leading, stride), span = strides, SPANS[mode]
    if not transposed and mode == "none":
        return r % 8 * 16 + r // 8 * stride + k * size % 16 + k * size // 16 * leading
    if not transposed:
        return r % 8 * span + r // 8 * stride + k * size
    if mode == "none":
        return r * size % 16 + r * size // 16 * stride + k % 8 * 16 + k // 8 * leading
    return r * size % span + r * size // span * leading + k % 8 * span + k // 8 * stride


def swizzled(mode: str, address):
    rows = SPANS[mode] // 16
    return address ^ ((address >> 7 & rows - 1) << 4)


def dense_strides(mode: str, transposed: bool, rows: int, k: int, size: int) -> tuple[int, int]:
    if mode == "none":
        return (rows * size * 8, 128) if transposed else (rows * 16, 128)
    return (k * SPANS[mode], 8 * SPANS[mode]) if transposed else (16, 8 * SPANS[mode])


def place(image: np.ndarray, matrix, layout: tuple[str, bool], base: int) -> int:
    """Write a matrix [rows, k] into the image; returns its descriptor"""
    (mode, transposed), (rows, k) = layout, matrix.shape
    strides = dense_strides(mode, transposed, rows, k, matrix.itemsize)
    offsets = element_offset(mode, transposed, matrix.itemsize, strides, *np.indices((rows, k)))
    places = swizzled(mode, TILE + base + offsets) - TILE
    elements = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, k, -1)
    image[places[..., None] + np.arange(matrix.itemsize)] = elements
    word = (TILE + base) >> 4 | strides[0] >> 4 << 16 | strides[1] >> 4 << 32
    return word | CODES[mode] << 62


def random_matrix(rng, shape, name: str) -> np.ndarray:
    if name in ("s8", "u8"):
        return rng.integers(*((-128, 128) if name == "s8" else (0, 256)), shape).astype(NUMPY[name])
    return (rng.integers(-8, 9, shape) / 4).astype(NUMPY[name])


def registers(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def zeroed(count: int, value: str = "0") -> str:
    return "".join(f"mov.b32 %r{i}, {value};\n" for i in range(count))


def stored(count: int, pointer: str = "%rd1") -> str:
    """Each thread stores its registers, two at once, which the emulator does in less time."""
    text = f"mad.wide.u32 %rd21, %lane, {4 * count}, {pointer};\n"
    pairs = (f"st.global.v2.b32 [%rd21+{4 * i}], {registers(i, 2)};\n" for i in range(0, count, 2))
    return text + "".join(pairs)


def words(descriptors: list[int]) -> str:
    return "".join(f"mov.u64 %rd{10 + i}, {word};\n" for i, word in enumerate(descriptors))


def result(out: np.ndarray, n: int, d: str) -> np.ndarray:
    """D[64, n] from the registers [thread, i] by the formula of the accumulator fragment"""
    values = out.view({"f16": np.float16}.get(d) or NUMPY[d]).reshape(128, -1)
    thread, i = np.indices((128, n // 2))
    warp, lane = thread // 32, thread % 32
    row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)
    matrix = np.zeros((64, n), values.dtype)
    matrix[row, 8 * (i // 4) + 2 * (lane % 4) + i % 2] = values[:, : n // 2]
    return matrix


def count_of(n: int, d: str) -> int:
    return n // 4 if d == "f16" else n // 2


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64).T


K_MODES = [(mode, False) for mode in SPANS]
CASES = [
    *[("f32", "bf16", "bf16", 64, a, ("128B", False)) for a in K_MODES],
    *[("f32", "bf16", "bf16", 64, (mode, True), ("64B", True)) for mode in SPANS],
    *[("f32", "f16", "f16", 32, ("32B", False), (mode, True)) for mode in SPANS],
    ("f16", "f16", "f16", 8, ("64B", False), ("none", True)),
    ("f16", "f16", "f16", 136, ("none", True), ("32B", False)),
    ("f32", "bf16", "bf16", 256, ("128B", False), ("128B", True)),
    ("f32", "tf32", "tf32", 24, ("128B", False), ("32B", False)),
    ("f32", "e4m3", "e5m2", 40, ("64B", False), ("none", False)),
    ("f16", "e5m2", "e4m3", 16, ("128B", False), ("64B", False)),
    ("s32", "s8", "u8", 48, ("128B", False), ("32B", False)),
    ("s32", "u8", "u8", 96, ("none", False), ("128B", False)),
]
K_OF = {"f16": 16, "bf16": 16, "tf32": 8}


def immediates(d: str, a: str, transposed: tuple[bool, ...], scales=(1, 1)) -> str:
    text = "" if d == "s32" else ", {}, {}".format(*scales)
    flags = transposed if a in ("f16", "bf16") else ()
    return text + "".join(f", {int(flag)}" for flag in flags)


@pytest.mark.parametrize(("d", "a", "b", "n", "a_layout", "b_layout"), CASES, ids=[
    f"{d}-{a}-{b}-n{n}-{la[0]}{'-mn' * la[1]}-{lb[0]}{'-mn' * lb[1]}"
    for d, a, b, n, la, lb in CASES
])  # fmt: skip
def test_products_of_shared_operands_land_in_the_fragments(
    run, poisoned, d, a, b, n, a_layout, b_layout
):
    """D starts with 3 in every register (an f16 pair: two tiny numbers), which scale-d ignores"""
    k, rng, count = K_OF.get(a, 32), np.random.default_rng(n), count_of(n, d)
    left, right = random_matrix(rng, (64, k), a), random_matrix(rng, (n, k), b)
    image = np.full(32768, 0x55, np.uint8)
    descriptors = [place(image, left, a_layout, 0), place(image, right, b_layout, 16384)]
    flags = immediates(d, a, (a_layout[1], b_layout[1]))
    body = FILL + words(descriptors) + zeroed(count, "3") + FENCE
    body += f"""wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b} {registers(0, count)},
      %rd10, %rd11, %p0{flags};\n"""
    out = poisoned(128 * count, np.uint32)
    run(body + DONE + stored(count), image, out, threads=128, target="sm_90a")
    wanted = product(left, right).astype(NUMPY[d])
    np.testing.assert_array_equal(result(out, n, d), wanted)


@pytest.mark.parametrize(("d", "a", "k"), [("f32", "bf16", 16), ("f16", "f16", 16),
                                           ("f32", "tf32", 8), ("f32", "e4m3", 32)])  # fmt: skip
def test_operand_a_can_come_from_registers(run, poisoned, d, a, k):
    """Warp w holds rows 16w .. 16w+15 in the fragments of mma.sync; A is negated"""
    rng, n = np.random.default_rng(k), 32
    left, right = random_matrix(rng, (64, k), a), random_matrix(rng, (n, k), a)
    image = np.zeros(32768, np.uint8)
    descriptor = place(image, right, ("64B", False), 0)
    each, count = 4 // left.itemsize, count_of(n, d)
    rows = np.zeros((128, 4 * each), left.dtype)
    for thread in range(128):
        for w in range(4):
            for e in range(each):
                row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (w % 2)
                column = 4 * each * (w // 2) + each * (thread % 4) + e
                rows[thread, each * w + e] = left[row, column]
    body = FILL + words([descriptor]) + "mad.wide.u32 %rd21, %lane, 16, %rd2;\n"
    body += f"ld.global.v4.b32 {registers(100, 4)}, [%rd21];\n" + zeroed(count) + FENCE
    flags = immediates(d, a, (False,), (-1, 1))
    opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{a}"
    body += f"{opcode} {registers(0, count)}, {registers(100, 4)}, %rd10, %p1{flags};\n"
    out = poisoned(128 * count, np.uint32)
    run(body + DONE + stored(count), image, out, rows.view(np.uint8), threads=128, target="sm_90a")
    np.testing.assert_array_equal(result(out, n, d), -product(left, right).astype(NUMPY[d]))


@pytest.mark.parametrize(("before", "is_early"), [("", True), (DONE, False)])
def test_registers_of_a_are_the_mmas_until_it_is_waited_for(run, poisoned, before, is_early):
    """PTX ISA, wgmma.wait_group; to read them, as another MMA of the same A does, is harmless"""
    image = np.zeros(32768, np.uint8)
    descriptor = place(image, np.ones((8, 16), ml_dtypes.bfloat16), ("32B", False), 0)
    opcode = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"
    mmas = "".join(
        f"{opcode} {registers(first, 4)}, {registers(100, 4)}, %rd10, %p1, 1, 1, 0;\n"
        for first in (0, 10)
    )
    body = FILL + words([descriptor]) + zeroed(14) + "".join(
        f"mov.b32 %r{100 + i}, 0x3f803f80;\n" for i in range(4)
    )  # fmt: skip
    body += FENCE + mmas + before + "shl.b32 %r102, %r102, 1;\n" + DONE + stored(4)
    out = poisoned(512, np.uint32)
    if is_early:
        with pytest.raises(Trap, match=r"missing-wait: a register of operand A .* was written"):
            run(body, image, out, threads=128, target="sm_90a")
        return
    run(body, image, out, threads=128, target="sm_90a")
    assert (result(out, 8, "f32") == 16).all()


BF16 = "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16"
STEP = f"{BF16} {registers(0, 8)}, %rd10, %rd11, %p1, 1, 1, 0, 0;\n"
ADVANCE = "add.u64 %rd10, %rd10, 2; add.u64 %rd11, %rd11, 2;\n"


def bf16_case(seed: int = 0):
    rng = np.random.default_rng(seed)
    a, b = random_matrix(rng, (64, 64), "bf16"), random_matrix(rng, (16, 64), "bf16")
    image = np.zeros(32768, np.uint8)
    descriptors = [place(image, a, ("128B", False), 0), place(image, b, ("128B", False), 8192)]
    return a, b, image, words(descriptors)


@pytest.mark.parametrize("seed", range(4))
def test_k_steps_add_up_on_the_same_registers_without_waits(run, poisoned, seed):
    """Two groups; each step moves both descriptors by 32 bytes inside the swizzle atom"""
    a, b, image, descriptors = bf16_case()
    steps = STEP + ADVANCE + STEP + COMMIT + ADVANCE + STEP + ADVANCE + STEP
    out = poisoned(1024, np.uint32)
    body = FILL + descriptors + zeroed(8, "0f3F800000") + FENCE + steps + DONE + stored(8)
    run(body, image, out, threads=128, target="sm_90a", seed=seed)
    np.testing.assert_array_equal(result(out, 16, "f32"), product(a, b) + 1)


@pytest.mark.parametrize("seed", range(3))
def test_wait_group_releases_the_registers_of_older_groups_only(run, poisoned, seed):
    a, b, image, descriptors = bf16_case()
    other = STEP.replace(registers(0, 8), registers(20, 8))
    body = FILL + descriptors + zeroed(28) + FENCE + STEP + COMMIT + other + COMMIT
    body += "wgmma.wait_group.sync.aligned 1;\n" + stored(8) + "wgmma.wait_group.sync.aligned 0;\n"
    out = poisoned(1024, np.uint32)
    run(body, image, out, threads=128, target="sm_90a", seed=seed)
    np.testing.assert_array_equal(result(out, 16, "f32"), product(a[:, :16], b[:, :16]))


def test_a_copy_of_a_register_under_way_moves_along(run, poisoned):
    """What a compiler does to keep its values apart: D of the second step are other registers"""
    a, b, image, descriptors = bf16_case()
    moves = "".join(f"mov.b32 %r{20 + i}, %r{i};\n" for i in range(8))
    back = "".join(f"mov.b32 %r{i}, %r{20 + i};\n" for i in range(8))
    other = STEP.replace(registers(0, 8), registers(20, 8))
    body = FILL + descriptors + zeroed(8) + FENCE + STEP + moves + ADVANCE + other + DONE
    out = poisoned(1024, np.uint32)
    run(body + back + stored(8), image, out, threads=128, target="sm_90a")
    np.testing.assert_array_equal(result(out, 16, "f32"), product(a[:, :32], b[:, :32]))


def test_of_many_alike_uses_the_one_of_a_register_under_way_is_named(run, poisoned):
    """Instructions that are executed as one are told apart in a verdict"""
    _, _, image, descriptors = bf16_case()
    uses = "".join(f"add.u32 %r{40 + i}, %r{30 + i}, 1;\n" for i in range(8))
    uses += "add.u32 %r60, %r5, 7;\n" + uses.replace("%r4", "%r7").replace(", 1", ", 7")
    body = FILL + descriptors + zeroed(40) + FENCE + STEP + uses + DONE
    with pytest.raises(Trap, match=r"`add\.u32 %r60, %r5, 7`: missing-wait"):
        run(body, image, poisoned(1024, np.uint32), threads=128, target="sm_90a")


def test_integer_accumulators_saturate_when_asked(run, poisoned):
    a, b = np.full((64, 32), 255, np.uint8), np.full((8, 32), 255, np.uint8)
    image, out = np.zeros(32768, np.uint8), poisoned(512, np.uint32)
    text = [place(image, a, ("32B", False), 0), place(image, b, ("32B", False), 8192)]
    body = FILL + words(text) + zeroed(4, "2147483000") + FENCE
    body += f"""wgmma.mma_async.sync.aligned.m64n8k32.satfinite.s32.u8.u8 {registers(0, 4)},
      %rd10, %rd11, %p1;\n"""
    run(body + DONE + stored(4), image, out, threads=128, target="sm_90a")
    assert set(out.tolist()) == {(1 << 31) - 1}


@pytest.mark.sweep(6)
@pytest.mark.parametrize("seed", range(6))
def test_a_wait_in_one_warp_covers_the_reads_of_all_four(run, poisoned, seed):
    a, b, image, descriptors = bf16_case()
    overwrite = """setp.ne.u32 %p2, %lane, 0; @%p2 bra E; mov.u32 %r100, %tile;
mov.b32 %r102, 0x7fc07fc0;
O: st.shared.v4.b32 [%r100], {%r102, %r102, %r102, %r102};
add.u32 %r100, %r100, 16; sub.u32 %r101, %r100, %tile;
setp.lt.u32 %p2, %r101, 16384; @%p2 bra O;
E:
"""
    out = poisoned(1024, np.uint32)
    body = FILL + descriptors + zeroed(8) + FENCE + STEP + DONE + overwrite + stored(8)
    run(body, image, out, threads=128, target="sm_90a", seed=seed)
    np.testing.assert_array_equal(result(out, 16, "f32"), product(a[:, :16], b[:, :16]))


USES = {
    "arithmetic": "add.f32 %r90, %r0, %r1;", "a store": "st.global.b32 [%rd1], %r3;",
    "a vector store": "st.global.v4.b32 [%rd1], {%r0, %r1, %r2, %r3};",
    "a comparison": "setp.lt.f32 %p5, %r2, %r0;", "a select": "selp.b32 %r9, %r2, %r9, %p1;",
    "a guarded move": "setp.lt.u32 %p5, %lane, 3; @%p5 mov.b32 %r9, %r2;",
    "bit logic": "not.b32 %r9, %r7;", "a conversion": "cvt.rn.bf16x2.f32 %r9, %r1, %r0;",
    "a shuffle": "shfl.sync.bfly.b32 %r9, %r4, 1, 31, -1;",
}  # fmt: skip


@pytest.mark.parametrize("use", list(USES))
def test_every_use_of_the_accumulator_before_the_wait_is_refused(trapped, poisoned, use):
    _, _, image, descriptors = bf16_case()
    body = FILL + descriptors + zeroed(10) + FENCE + STEP + COMMIT + USES[use] + "\n" + DONE
    trap = trapped(body, image, poisoned(1024, np.uint32), threads=128, target="sm_90a")
    assert trap.category == "missing-wait", str(trap)
    assert "wgmma.wait_group" in str(trap)


LATE_MOVES = {"of a number": "mov.b32 %r3, 7;", "of another register": "mov.b32 %r3, %r90;"}


@pytest.mark.parametrize("late", LATE_MOVES)
def test_a_move_that_sinks_behind_the_fence_of_its_group_is_a_warning(run, poisoned, late):
    """NVVM places copies so, as in the CuTe DSL's persistent kernels, and ptxas orders them"""
    _, _, image, descriptors = bf16_case()
    body = FILL + descriptors + "mov.b32 %r90, 7;" + zeroed(8, "1") + FENCE + LATE_MOVES[late]
    out = poisoned(128 * 8, np.uint32)
    report = run(body + STEP + DONE + stored(8), image, out, threads=128, target="sm_90a")
    assert {each.category for each in report.warnings} == {"late-move"}


ONE_WARP = "setp.lt.u32 %p2, %lane, 32; @!%p2 bra E;\n"
MISUSES = {
    "no fence after the registers were written": (
        FENCE + "add.f32 %r3, %r3, %r3;" + STEP, "missing-fence", "after the last wgmma.fence"),
    "no fence after mov of another value": (
        "mov.b32 %r9, 7;" + FENCE + "add.u32 %r9, %r9, 1; mov.b32 %r3, %r9;" + STEP,
        "missing-fence", "after the last wgmma.fence"),
    "mov of a number, and no fence in its group": (
        FENCE + STEP + DONE + "mov.b32 %r3, 7;" + STEP, "missing-fence",
        "after the last wgmma.fence"),
    "a warp without a warpgroup": (FENCE + STEP + DONE, "convergence", "2 do not exist"),
    "written before the wait": (FENCE + STEP + COMMIT + "mov.b32 %r0, 0;" + DONE, "missing-wait",
                                "was written before"),
    "another shape on registers under way": (
        FENCE + STEP + STEP.replace("n16", "n8").replace(registers(0, 8), registers(0, 4)) + DONE,
        "missing-wait", "used before"),
    "one warp of the warpgroup alone": (FENCE + ONE_WARP + STEP + DONE + "E:", "deadlock",
                                        "until 0 groups of the warpgroup are left"),
    "one warp alone, no wait": (FENCE + ONE_WARP + STEP + COMMIT + 200 * "nanosleep.u32 1;" + "E:",
                                "convergence", "not executed a wgmma.mma_async of the others"),
    "scales other than one": (FENCE + STEP.replace("1, 1, 0", "2, 1, 0"), "operand", "-1 or 1"),
    "A with a bad type": (STEP.replace("bf16.bf16", "bf16.f16"), "unmodelled", "9.7.15.5.2"),
    "sparse A": (STEP.replace("mma_async", "mma_async.sp"), "unmodelled", "m64n16k16"),
    "bits that must be zero": (FENCE + "or.b64 %rd10, %rd10, 16384;" + STEP + DONE, "descriptor",
                               "bits 14-15"),
    "an exit before the wait": (FENCE + STEP + COMMIT, "exited-cta", "wgmma"),
}  # fmt: skip


@pytest.mark.parametrize("misuse", list(MISUSES))
def test_misuse_is_named(trapped, poisoned, misuse):
    _, _, image, descriptors = bf16_case()
    text, category, part = MISUSES[misuse]
    body = FILL + descriptors + zeroed(8, "1") + text
    threads = 64 if "without a" in misuse else 128
    trap = trapped(body, image, poisoned(1024, np.uint32), threads=threads, target="sm_90a")
    assert (trap.category, part in str(trap)) == (category, True), str(trap)


def test_other_targets_have_no_wgmma(trapped):
    trap = trapped(FENCE, threads=128)
    assert (trap.category, "sm_90a" in str(trap)) == ("target", True)
