"""What one op of the dialect `sm` can know is wrong."""

import pytest
from sm_texts import descriptor, kernel, message_of, mma, scaling_mma, wgmma


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
            '"sm.part_barrier"(%i) {id = 15 : i64, parts = 2 : i64, threads = 128 : i64} : (i32) '
            "-> ()",
            "sm.part_barrier: id must be 1 to 14, got 15",
        ),
        (
            '"sm.part_barrier"(%i) {id = 8 : i64, parts = 2 : i64, threads = 100 : i64} : (i32) '
            "-> ()",
            "sm.part_barrier: threads must be whole warps, 32 to 1024, got 100",
        ),
        (
            '%f = arith.constant true\n%h = "sm.any_part_barrier"(%f, %i) {id = 8 : i64, '
            "parts = 1 : i64, threads = 128 : i64} : (i1, i32) -> i1",
            "sm.any_part_barrier: parts must be 2 to 15, got 1",
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
        (wgmma(m=128), "sm.wgmma: m must be 64, got 128"),
        (wgmma(k=32), "sm.wgmma: k must be 16 for bf16, got 32"),
        (wgmma(first=6, n=128), "sm.wgmma: first must be a multiple of 4 up to 192, got 6"),
        (wgmma(first=196, n=128), "sm.wgmma: first must be a multiple of 4 up to 192, got 196"),
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
            '%c = arith.constant 7 : i32\n"sm.tma_gather"(%p, %map, %p, %c, %c, %c, %c, %c) '
            "{cta_group = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 5>}"
            " : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, i32, i32, i32, i32, i32) -> ()",
            "sm.tma_gather: cta_group must be one of (1, 2), got 3",
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
            "'cluster_nctarank', 'clock', 'globaltimer_lo'), "
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
            '"sm.each_rank"(%m) ({\n^bb0(%rank: i64):\n}) {by = "warp"} : (i16) -> ()',
            "sm.each_rank: the body must take a rank as i32, got ['i64']",
        ),
        (
            '%m = "sm.cta_mask"() {along = [], whose = "cta"} : () -> i16\n'
            '"sm.each_rank"(%m) ({\n^bb0(%rank: i32):\n}) {by = "lane"} : (i16) -> ()',
            "sm.each_rank: by must be one of ('warp', 'warpgroup'), got 'lane'",
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
    expected = (
        "sm.advance: a descriptor must come from sm.smem_descriptor or sm.advance, got another "
        "value; make it by one of them"
    )
    assert message_of(kernel(body)) == expected
