"""What one op of the dialect `sm` can know is wrong."""

import pytest

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.dtypes import DTYPES, scaled_mma_of_kind
from tilewright.dialects.errors import CompileError
from tilewright.passes.lowering.operands.descriptors import scaled_instruction_descriptor

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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            '"sm.barrier_init"(%p) {count = 0 : i64} : (!llvm.ptr<3>) -> ()',
            "sm.barrier_init: count must be 1 to 1048575, got 0",
        ),
        (
            '"sm.barrier_init"(%map) {count = 1 : i64} : (!llvm.ptr) -> ()',
            "sm.barrier_init: barrier must be !llvm.ptr<3>, got !llvm.ptr",
        ),
        (
            '"sm.expect_tx"(%p) {bytes = 1048576 : i64} : (!llvm.ptr<3>) -> ()',
            "sm.expect_tx: bytes must be 0 to 1048575, got 1048576",
        ),
        (
            '"sm.arrive"(%p) {scope = "grid"} : (!llvm.ptr<3>) -> ()',
            "sm.arrive: scope must be one of ('cta', 'cluster'), got 'grid'",
        ),
        (
            '"sm.named_barrier"() {id = 1 : i64, threads = 48 : i64} : () -> ()',
            "sm.named_barrier: threads must be whole warps, 32 to 1024, got 48",
        ),
        (
            '%c = arith.constant 7 : i16\n%v = "sm.widen"(%c) {dtype = "s8"} : (i16) -> '
            "vector<2xf16>",
            "sm.widen: dtype must be one of ('e4m3', 'e5m2'), got 's8'",
        ),
        (
            '%c = arith.constant 7 : i16\n%v = "sm.widen"(%c) {dtype = "e4m3"} : (i16) -> '
            "vector<2xbf16>",
            "sm.widen: must give vector<2xf16>, got vector<2xbf16>",
        ),
        (
            '"sm.named_barrier"() {id = 16 : i64, threads = 64 : i64} : () -> ()',
            "sm.named_barrier: id must be 0 to 15, got 16",
        ),
        (
            '"sm.await_turn"(%i) {id = 0 : i64, turns = 2 : i64} : (i32) -> ()',
            "sm.await_turn: id must be 1 to 14, got 0",
        ),
        (
            '"sm.give_turn"(%i) {id = 14 : i64, turns = 1 : i64} : (i32) -> ()',
            "sm.give_turn: turns must be 2 to 15, got 1",
        ),
        (
            '%d = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> ' + descriptor(lbo=24),
            "sm.smem_descriptor: lbo must be a multiple of 16 bytes up to 262128, got 24",
        ),
        (
            '%d = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> ' + descriptor(swizzle='"96B"'),
            "sm.smem_descriptor: swizzle must be one of ('none', '32B', '64B', '128B'), got '96B'",
        ),
        (
            '%d = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> ' + descriptor(version=2),
            "sm.smem_descriptor: version must be 0 to 1, got 2",
        ),
        (
            '%d = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> !sm.descriptor<{lbo = 16 : i64}>',
            "sm.smem_descriptor: a descriptor must have the fields base_offset, lbo, sbo, swizzle, "
            "version, got lbo",
        ),
        (mma(n=20), "sm.mma: n must be a multiple of 8 up to 256, got 20"),
        (mma(m=100), "sm.mma: m must be 64 or 128 with cta_group 1, got 100"),
        (mma(k=32), "sm.mma: bf16 is multiplied with kind f16 and k 16, got f16 and 32"),
        (mma(a_offset=8), "sm.mma: a_offset must be a multiple of 16 bytes up to 262128, got 8"),
        (scaling_mma(shift=0), "sm.scaling_mma: shift must be 1 to 15, got 0"),
        (scaling_mma(shift=16), "sm.scaling_mma: shift must be 1 to 15, got 16"),
        (scaling_mma(m=100), "sm.scaling_mma: m must be 64 or 128 with cta_group 1, got 100"),
        (
            scaling_mma(kind='"f8f6f4"', a_type='"e4m3"', b_type='"e4m3"', k=32),
            "sm.scaling_mma: kind must be one of ('f16', 'tf32'), which scale d, got 'f8f6f4'",
        ),
        (mma(a_major='"m"'), "sm.mma: a_major must be one of ('k', 'mn'), got 'm'"),
        (
            mma(a_type='"f64"'),
            "sm.mma: a_type must be one of ('f16', 'bf16', 'tf32', 'e4m3', 'e5m2', 's8', 'u8'), "
            "got 'f64'",
        ),
        (
            '"sm.tmem_alloc"(%p) {columns = 48 : i64, cta_group = 1 : i64} : (!llvm.ptr<3>) -> ()',
            "sm.tmem_alloc: columns must be one of (32, 64, 128, 256, 512), got 48",
        ),
        (
            '"sm.prefetch_box"(%map) {operandSegmentSizes = array<i32: 1, 0>} : (!llvm.ptr) -> ()',
            "sm.prefetch_box: a tensor has 1 to 5 dimensions, got 0",
        ),
        (
            '"sm.tma_load"(%p, %map, %p) {cta_group = 1 : i64, destination = "cta", '
            "operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}"
            " : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>) -> ()",
            "sm.tma_load: a tensor has 1 to 5 dimensions, got 0",
        ),
        (
            '%c = arith.constant 7 : i32\n"sm.tma_gather"(%p, %map, %p, %c, %c) {cta_group = 1 : '
            "i64, operandSegmentSizes = array<i32: 1, 1, 1, 2>}"
            " : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, i32, i32) -> ()",
            "sm.tma_gather: coordinates must be a column and four rows, got 2",
        ),
        (
            '"sm.stmatrix"(%p, %i, %i, %i) {operandSegmentSizes = array<i32: 1, 3>}'
            " : (!llvm.ptr<3>, i32, i32, i32) -> ()",
            "sm.stmatrix: must store 1, 2 or 4 matrices, got 3",
        ),
        (
            '"sm.set_registers"() {count = 20 : i64, action = "increase"} : () -> ()',
            "sm.set_registers: count must be a multiple of 8, got 20",
        ),
        (
            '%v = "sm.special_register"() {register = "laneid"} : () -> i32',
            "sm.special_register: register must be one of ('tid.x', 'ctaid.x', 'ctaid.y', "
            "'ctaid.z', 'clusterid.x', 'cluster_ctaid.x', 'cluster_ctaid.y', 'cluster_ctaid.z', "
            "'clock', 'globaltimer_lo'), "
            "got 'laneid'",
        ),
        (
            '%r = "sm.position"() {label = "x", stages = 0 : i64} : () -> !sm.place_in_ring',
            "sm.position: stages must be at least 1, got 0",
        ),
        *(
            (
                '%r = "sm.position"() {label = "x", stages = 2 : i64} : () -> !sm.place_in_ring\n'
                f'"sm.advance_position"(%r) {{slots = {slots} : i64}} : (!sm.place_in_ring) -> ()',
                f"sm.advance_position: slots must be 1 to 2147483647, got {slots}",
            )
            for slots in (0, 2**32 + 1)
        ),
        (
            '%m = "sm.cta_mask"() {along = ["n", "m"], whose = "cta"} : () -> i16',
            "sm.cta_mask: along must be some of ('m', 'n') in this order, got ['n', 'm']",
        ),
        (
            '%m = "sm.cta_mask"() {along = [], whose = "all"} : () -> i16',
            "sm.cta_mask: whose must be one of ('cta', 'pair', 'peers'), got 'all'",
        ),
        (
            '%m = "sm.cta_mask"() {along = ["m", "n"], whose = "peers"} : () -> i16',
            "sm.cta_mask: peers are in line along one axis, got ['m', 'n']",
        ),
        (
            '%m = "sm.cta_mask"() {along = [], whose = "cta"} : () -> i16\n'
            '"sm.each_rank"(%m) ({\n^bb0(%rank: i64):\n}) : (i16) -> ()',
            "sm.each_rank: the body must take a rank as i32, got ['i64']",
        ),
        (
            '%s = "sm.slot"(%i, %i) : (i32, i32) -> i32',
            "sm.slot: must give a slot of i32, got i32",
        ),
        (
            '%a = "sm.slot_address"(%i) : (i32) -> !llvm.ptr<3>',
            "sm.slot_address: must be of a slot that holds an answer, got i32",
        ),
    ],
)
def test_ops_that_do_not_verify(body, message):
    assert message_of(kernel(body)) == message


@pytest.mark.parametrize(
    ("launch", "got"),
    [("", "''"), ("[]", "'[]'"), ('{\\"entry\\": \\"g\\"}', """'{"entry": "g"}'""")],
)
def test_a_launch_that_is_not_the_kernels_is_refused(launch, got):
    message = "sm.kernel: launch must be a JSON object with the entry f and a schedule, got "
    assert message_of(kernel("", launch)) == message + got


@pytest.mark.parametrize("cluster", ["[0, 1, 1]", "[1, 1]", "[17, 1, 1]", "[8589934593, 1, 1]"])
def test_a_cluster_that_no_chip_starts_is_refused(cluster):
    text = kernel("").replace("cluster = [1, 1, 1]", f"cluster = {cluster}")
    rule = "sm.kernel: a cluster has three extents of at least 1, and up to 16 CTAs"
    assert message_of(text) == f"{rule}, got {cluster}"


def test_a_descriptor_that_no_op_makes_is_refused():
    made = descriptor()
    body = f"""
  %d = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {made}
  %e = arith.select %true, %d, %d : {made}
  %f = "sm.advance"(%e, %i) : ({made}, i32) -> {made}"""
    expected = "sm.advance: a descriptor must come from sm.smem_descriptor or sm.advance"
    assert message_of(kernel(body)) == expected


SUMS = "!llvm.struct<(f32, f32, f32, f32)>"


def fragments(a=4, b=2, k=16, type_="bf16"):
    fields = {"a_type": f'"{type_}"', "b_type": '"bf16"', "d_type": '"f32"', "k": k}
    return f"""
  %a = arith.constant dense<0> : vector<{a}xi32>
  %b = arith.constant dense<0> : vector<{b}xi32>
  %z = llvm.mlir.zero : {SUMS}
  %s = "sm.mma_sync"(%z, %a, %b) {{{attributes(fields)}}}
    : ({SUMS}, vector<{a}xi32>, vector<{b}xi32>) -> {SUMS}"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (fragments(a=2), "sm.mma_sync: a must have 4 words with k 16, got [2]"),
        (fragments(b=4), "sm.mma_sync: b must have 2 words with k 16, got [4]"),
        (fragments(k=32), "sm.mma_sync: k must be one of (8, 16), got 32"),
        (
            fragments(type_="tf32", k=8),
            "sm.mma_sync: b_type must be one of ('tf32', '3xtf32'), got 'bf16'",
        ),
        (
            '%w = "sm.ldmatrix"(%p) {offset = 0 : i64, transposed = 2 : i64} '
            ": (!llvm.ptr<3>) -> vector<4xi32>",
            "sm.ldmatrix: transposed must be 0 to 1, got 2",
        ),
        (
            '%w = "sm.ldmatrix"(%p) {offset = 0 : i64, transposed = 0 : i64} '
            ": (!llvm.ptr<3>) -> vector<3xi32>",
            "sm.ldmatrix: must give one of (1, 2, 4) words, got vector<3xi32>",
        ),
        (
            '%w = "sm.ldmatrix_padded"(%p) {bits = 4 : i64, offset = 0 : i64} '
            ": (!llvm.ptr<3>) -> vector<3xi32>",
            "sm.ldmatrix_padded: must give one of (1, 2, 4) words, got vector<3xi32>",
        ),
        (
            '%w = "sm.ldmatrix_padded"(%p) {bits = 8 : i64, offset = 0 : i64} '
            ": (!llvm.ptr<3>) -> vector<4xi32>",
            "sm.ldmatrix_padded: bits must be one of [4, 6], got 8",
        ),
        (
            '%w = "sm.load_once"(%map) : (!llvm.ptr) -> vector<4xbf16>',
            "sm.load_once: must give a vector of 16 bytes, got vector<4xbf16>",
        ),
        (
            '%w = "sm.load_once"(%p) : (!llvm.ptr<3>) -> vector<4xf32>',
            "sm.load_once: address must be !llvm.ptr or !llvm.ptr<1>, got !llvm.ptr<3>",
        ),
        (
            '%w = "sm.ldmatrix"(%map) {offset = 0 : i64, transposed = 0 : i64} '
            ": (!llvm.ptr) -> vector<4xi32>",
            "sm.ldmatrix: address must be !llvm.ptr<3>, got !llvm.ptr",
        ),
    ],
)
def test_fragments_that_no_instruction_has(body, message):
    assert message_of(kernel(body)) == message


def scaled_fragments(a=4, kind="mxf8f6f4", type_="e4m3", id_=0, block=32):
    fields = {
        "kind": f'"{kind}"',
        "block": block,
        "scale": '"ue8m0"',
        "a_type": f'"{type_}"',
        "b_type": f'"{type_}"',
        "id": id_,
    }
    return f"""
  %a = arith.constant dense<0> : vector<{a}xi32>
  %b = arith.constant dense<0> : vector<2xi32>
  %z = llvm.mlir.zero : {SUMS}
  %s = "sm.scaled_mma_sync"(%z, %a, %b, %i, %i) {{{attributes(fields)}}}
    : ({SUMS}, vector<{a}xi32>, vector<2xi32>, i32, i32) -> {SUMS}"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (scaled_fragments(a=2), "a and b must have 4 and 2 words, got [[2], [2]]"),
        (scaled_fragments(kind="mxf4", type_="e2m1", id_=1), "id must be one of (0, 2), got 1"),
        (
            scaled_fragments(kind="mxf4", block=16),
            "block must be one that mxf4 has with ue8m0, got 16",
        ),
        (
            scaled_fragments(type_="e8m0"),
            "a_type must be one of ('e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'), got 'e8m0'",
        ),
        (
            scaled_fragments(kind="mx8"),
            "kind must be one of ('mxf4', 'mxf4nvf4', 'mxf8f6f4'), got 'mx8'",
        ),
    ],
)
def test_scaled_fragments_that_no_instruction_has(body, message):
    assert message_of(kernel(body)) == f"sm.scaled_mma_sync: {message}"


SCALED = {
    **{name: value for name, value in MMA.items() if name not in ("d_type", "k")},
    "a_type": '"e4m3"',
    "b_type": '"e2m1"',
    "kind": '"mxf8f6f4"',
    "block": 32,
    "scale": '"ue8m0"',
    "a_id": 3,
    "b_id": 3,
}


def scaled_mma(**fields):
    made = descriptor()
    return (
        f'%d = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {made}\n'
        f'"sm.scaled_mma"(%i, %d, %d, %true, %i, %i) {{{attributes({**SCALED, **fields})}}}'
        f" : (i32, {made}, {made}, i1, i32, i32) -> ()"
    )


FOUR_BITS = {"kind": '"mxf4"', "a_type": '"e2m1"', "a_id": 2, "b_id": 0}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            scaled_mma(kind='"f8f6f4"'),
            "kind must be one of ('mxf4', 'mxf4nvf4', 'mxf8f6f4'), got 'f8f6f4'",
        ),
        (scaled_mma(m=64), "m must be 128 with cta_group 1, got 64"),
        (scaled_mma(n=264), "n must be a multiple of 8 up to 256, got 264"),
        (scaled_mma(**FOUR_BITS | {"a_id": 1}), "a_id must be one of (0, 2), got 1"),
        (
            scaled_mma(**FOUR_BITS | {"a_type": '"e4m3"'}),
            "a_type must be one of ('e2m1',), got 'e4m3'",
        ),
        (
            scaled_mma(a_offset=24),
            "a_offset must be a multiple of 16 bytes up to 262128, got 24",
        ),
    ],
)
def test_mmas_with_block_scales_that_no_instruction_is(body, message):
    assert message_of(kernel(body)) == f"sm.scaled_mma: {message}"


def test_instruction_descriptors_of_block_scaled_mmas_are_the_worked_ones():
    """PTX ISA, instruction descriptor of .kind::mxf8f6f4, mxf4 and mxf4nvf4."""
    e4m3, e2m1 = DTYPES["e4m3"], DTYPES["e2m1"]
    cases = {
        (128, "mxf8f6f4", 32, e4m3, 0): 0x08C00000,
        (128, "mxf8f6f4", 32, e4m3, 3): 0x08C00000 + 3 * 0x20000010,
        (128, "mxf4", 32, e2m1, 0): 0x08C00480,
        (128, "mxf4", 32, e2m1, 2): 0x48C004A0,
        (128, "mxf4nvf4", 32, e2m1, 2): 0x48C004A0,
        (128, "mxf4nvf4", 16, e2m1, 0): 0x08400480,
        (256, "mxf4nvf4", 16, e2m1, 0): 0x10400480,
    }
    for (m, kind, block, dtype, byte), word in cases.items():
        mma = scaled_mma_of_kind(kind, block, "ue4m3" if block == 16 else "ue8m0")
        assert mma is not None
        made = scaled_instruction_descriptor(m, 256, mma, (dtype, dtype), ("k", "k"), (byte, byte))
        assert made == word, (hex(made), hex(word))
    powers = scaled_mma_of_kind("mxf4nvf4", 16, "ue8m0")
    assert powers is not None  # bit 23 says ue8m0
    made = scaled_instruction_descriptor(128, 256, powers, (e2m1, e2m1), ("k", "k"), (0, 0))
    assert made == 0x08400480 | 1 << 23
