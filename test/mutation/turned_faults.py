"""Faults of weights that are A of wgmma."""

from __future__ import annotations

from fault import Fault

TESTS = ("test/numerics/test_turned_weights.py",)
TURNED = [
    Fault(
        "weights for wgmma: registers of A are written again before the MMA has read them",
        "    under_way = min(PENDING_MAX, groups_of_mmas(scope.kernel) - 1)",
        "    under_way = min(PENDING_MAX, groups_of_mmas(scope.kernel))",
        TESTS,
    ),
    Fault(
        "weights for wgmma: the second row of a thread is widened for both",
        "self.weights.pair(atom * ATOM_M + half * ROWS_APART, k + behind_k)",
        "self.weights.pair(atom * ATOM_M + ROWS_APART, k + behind_k)",
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
]
