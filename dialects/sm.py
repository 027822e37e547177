"""The `sm` dialect: what the hardware of one streaming multiprocessor is asked to do for a CTA.

    sm.warps       the part of the program that some warps of the CTA run, a team
    sm.run         what one elected lane of a team runs alone
    sm.converge    the lanes of each warp wait for each other
    sm.fence       orders what this thread did in one way with what follows in another

Between the pipes of a program and PTX: an op is one instruction, or one word that instructions
take, with every field by its name in the PTX ISA.
"""

from .mlir import ext, ir
from .verify import refuse

FENCES = ("async_shared", "mbarrier_init", "tcgen05_before", "tcgen05_after")


class Sm(ext.Dialect, name="sm"):
    """What one CTA's hardware is asked to do."""


class FenceOp(Sm.Operation, name="fence"):
    """Orders what this thread did with what comes after it.

    "async_shared" puts its writes to shared memory before accesses by the async proxy,
    "mbarrier_init" its barriers before their use by the cluster. "tcgen05_before" and
    "tcgen05_after" stand on either side of a barrier that orders tensor-core instructions.
    """

    kind: ir.StringAttr

    def verify_invariants(self) -> bool:
        kind = self.kind.value
        return kind in FENCES or refuse(self, f"kind must be one of {FENCES}, got {kind!r}")
