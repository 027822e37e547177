"""Faults of sums and operands that are taken for others, and of what a CTA leaves behind."""

from __future__ import annotations

from fault import Fault

SUMS = [
    Fault(
        "shared-rules: a CTA may leave bulk stores behind that read its shared memory",
        "            if not self.lenient:",
        "            if self.lenient:",
        ("test/emulator/tensor_copies/test_bulk_groups.py",),
    ),
    Fault(
        "unread-sums: sums that were read may be added to",
        "        if adds and before.load is not None:",
        "        if adds and before.load == 0:",
        ("test/emulator/tensor_core/test_unread_sums.py",),
    ),
    Fault(
        "boxes: operands may have another type than their tensor map",
        "        if not elements or legal is None or elements in legal:",
        "        if not elements or legal is None or legal:",
        ("test/bugs/test_bug_zoo.py",),
    ),
    Fault(
        "sparse-metadata: the elements of a pair are exchanged",
        "    return (2 * kept[:, :, None] + np.arange(2)).reshape(len(kept), -1)",
        "    return (2 * kept[:, :, None] + 1 - np.arange(2)).reshape(len(kept), -1)",
        ("test/emulator/tensor_core/test_sparse_block_scaling.py",),
    ),
    Fault(
        "program: a parameter's own address is a generic one, too",
        "            return self.constant(placed.offset + symbol.offset, bits)",
        "            return self.constant((3 << 44) + placed.offset + symbol.offset, bits)",
        ("test/bugs/test_bug_zoo.py",),
    ),
]
