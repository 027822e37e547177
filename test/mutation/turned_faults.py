"""Faults of weights that are A of wgmma, and of tcgen05.mma."""

from __future__ import annotations

from fault import Fault

TESTS = ("test/numerics/weights/test_turned_weights.py",)
TENSOR_MEMORY = ("test/numerics/weights/test_weights_in_tensor_memory.py",)
BLOCK_SCALES = ("test/numerics/scales/test_exchanged_block_scales.py",)
TURNED = [
    Fault(
        "swap: MMAs take the block scales of the operand that they do not multiply by them",
        "        scales.reverse()\n        sides.reverse()\n",
        "        sides.reverse()\n",
        BLOCK_SCALES,
    ),
    Fault(
        "swap: the manifest says the types of a and b with block scales the other way round",
        "            types.reverse()\n        types += ",
        "            pass\n        types += ",
        BLOCK_SCALES,
    ),
    Fault(
        "clustering: the scales of exchanged operands are taken for other arguments",
        "    return number ^ 1 if is_swapped(kernel) else number\n\n\ndef _argument",
        "    return 1 - number if is_swapped(kernel) else number\n\n\ndef _argument",
        BLOCK_SCALES,
    ),
    Fault(
        "weights for wgmma: registers of A are written again before the MMA has read them",
        "    under_way = min(PENDING_MAX, groups_of_mmas(scope.kernel) - 1)",
        "    under_way = min(PENDING_MAX, groups_of_mmas(scope.kernel))",
        TESTS,
    ),
    Fault(
        "weights for wgmma: the second row of a thread is widened for both",
        "self.weights.pair(atom * ATOM_M + half * ROW_DISTANCE, k + behind_k)",
        "self.weights.pair(atom * ATOM_M + ROW_DISTANCE, k + behind_k)",
        TESTS,
    ),
    Fault(
        "weights for wgmma: sums are multiplied by the scales of the first 64 rows",
        "strict=True))[2 * atom : 2 * atom + 2]",
        "strict=True))[:2]",
        TESTS,
    ),
    Fault(
        "emulator: registers of A may be written while an MMA reads them",
        "    if any(registers[slot] is not value for slot, value in product.read.items()):",
        "    if any(False for slot, value in product.read.items()):",
        ("test/emulator/foreign_instructions/test_wgmma_products.py",),
    ),
    Fault(
        "weights for tcgen05: nobody waits until they are in tensor memory",
        "    sm.TmemStoreWaitOp.of()\n",
        "",
        TENSOR_MEMORY,
    ),
    Fault(
        "weights for tcgen05: columns are written again while an MMA reads them",
        "    await_product(scope, number + (-PRODUCT_SLOTS))",
        "    await_product(scope, number + (-2 * PRODUCT_SLOTS))",
        TENSOR_MEMORY,
    ),
    Fault(
        "weights for tcgen05: two warpgroups exchange their halves of K",
        "            start = start + self.half * columns",
        "            start = start + (self.half ^ 1) * columns",
        TENSOR_MEMORY,
    ),
    Fault(
        "weights for tcgen05: a lane subtracts the zero point of the row of its sums",
        "        return first, start + row_of_lane(team, m) if by_lanes else first",
        "        return first, first",
        TENSOR_MEMORY,
    ),
    Fault(
        "weights for tcgen05: products of groups are added times the scales of the next one",
        """        if not at_once:
            _add_before(scope, op, number, group == 0)
        _keep(op, scales.factors(group))
""",
        """        _keep(op, scales.factors(group))
        if not at_once:
            _add_before(scope, op, number, group == 0)
""",
        TENSOR_MEMORY,
    ),
]
