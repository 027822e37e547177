"""Faults of the functions of an epilogue, and of when their numbers are there."""

from __future__ import annotations

from fault import Fault

FAST = "test/numerics/epilogues/test_fast_functions.py"
CIRCULAR = "test/numerics/epilogues/test_circular_functions.py"

FUNCTIONS = [
    Fault(
        "slopes: the zero of GELU's slope is a single number of f32",
        "literal(high)), literal(low))",
        "literal(high)), literal(0.0))",
        (FAST,),
    ),
    Fault(
        "slopes: a density of another width is taken for that of GELU",
        "        and math.isclose(power, -(slope.scale**2) / 2, rel_tol=ALIKE)\n",
        "",
        (FAST,),
    ),
    Fault(
        "fast functions: powers of a scale leave the range of f32",
        "SCALES = (2.0**-10, 2.0**10)",
        "SCALES = (0.0, math.inf)",
        (FAST,),
    ),
    Fault(
        "fast functions: below 0 the share is that above 0",
        "CmpFPredicate.OLT if scale > 0 else arith.CmpFPredicate.OGT",
        "CmpFPredicate.OLT if scale < 0 else arith.CmpFPredicate.OGT",
        (FAST,),
    ),
    Fault(
        "fast functions: a share by powers is taken where something is added to it",
        "        if self.by_powers and self._may_err(op.result, 1):",
        "        if self.by_powers:",
        (FAST,),
    ),
    Fault(
        "fast functions: a share by powers takes along whatever it is multiplied by",
        "        if number is not None and ABSORBED[0] <= abs(number) <= ABSORBED[1]:",
        "        if number is not None:",
        (FAST,),
    ),
    Fault(
        "fast functions: a warpgroup that has a tile of its own has shares by powers, too",
        "any((target.mma_warpgroups(*each) or 1) > 1 for each in sums)",
        "bool(sums)",
        (FAST,),
    ),
    Fault(
        "late-numbers: warpgroups that store by themselves have none",
        "sm.NamedBarrierOp | sm.PartBarrierOp):",
        "sm.NamedBarrierOp):",
        (FAST,),
    ),
    Fault(
        "logarithms: near 1 the hardware's, whose error is absolute there",
        "    return arith.select(below, near, far)\n\n\ndef _odd",
        "    return far\n\n\ndef _odd",
        ("test/numerics/epilogues/test_logarithms.py",),
    ),
    Fault(
        "circular functions: 2/pi has fewer bits than the largest numbers need",
        "0xDB629599, 0x3C439041)",
        "0, 0x3C439041)",
        (CIRCULAR,),
    ),
    Fault(
        "intervals: a sine that passes its peak has the limits of its ends",
        "np.floor((above - turn) / 2) >= np.ceil((below - turn) / 2)",
        "np.floor((above - turn) / 2) > np.ceil((below - turn) / 2)",
        (CIRCULAR,),
    ),
    Fault(
        "modules: the sums of addmm are rounded before the bias joins them",
        "    if a.dtype not in NARROW and beta != 0:\n        operator = aten.addmm.default",
        "    if beta != 0:\n        operator = aten.addmm.default",
        ("test/numerics/test_torch_modules.py",),
    ),
    Fault(
        "late-numbers: the flag of a meeting holds in no thread",
        "made = sm.AnyBarrierOp.of(build.true(), **how)",
        "made = sm.AnyBarrierOp.of(build.constant(0, build.i1()), **how)",
        (FAST,),
    ),
]
