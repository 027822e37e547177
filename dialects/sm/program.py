"""The kernel itself, special registers, addresses and register counts."""

import json
import math
from typing import Any

from ..entry_names import name_refusal
from ..fallback import verify_fallback
from ..integer_types import I1, I16, I32
from ..mlir import ext, ir
from ..tile_types import integers_of
from ..verify import refuse
from .types import CLUSTER, GLOBAL, SHARED, Instruction, verify_choice, verify_pointer, verify_range

REGISTERS = (
    "tid.x",
    "ctaid.x",
    "ctaid.y",
    "ctaid.z",
    "clusterid.x",
    "cluster_ctaid.x",
    "cluster_ctaid.y",
    "cluster_ctaid.z",
    "cluster_nctarank",
    "clock",
    "globaltimer_lo",
)
CTAS_MAX = 32  # on a multiprocessor (CUDA C++ Programming Guide, compute capabilities)
ACTIONS = ("increase", "decrease")
APPROXIMATIONS = ("ex2", "ex2.ftz", "lg2", "rcp.ftz", "rsqrt", "tanh")
NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
F32 = ir.F32Type
CLUSTER_MAX = 16  # CTAs, on any chip


class KernelOp(
    Instruction, name="kernel", traits=[ir.IsIsolatedFromAboveTrait, ir.NoTerminatorTrait]
):
    """The program that each of `threads` threads of a CTA runs; `cluster` CTAs start together.

    Where there is `fallback`, so many may start together in their place.
    Its arguments are the kernel's parameters: tensor maps (`!llvm.ptr`) and pointers to global
    memory (`!llvm.ptr<1>`), and last the rows of C, and then its matrices, where a launch says them
    (`i32`). `launch` is what a launch needs (docs/manifest.md), as JSON text.
    """

    sym_name: ir.StringAttr
    threads: ir.IntegerAttr
    cluster: ir.ArrayAttr
    launch: ir.StringAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        reason = name_refusal(self.sym_name.value)
        if reason:
            return refuse(self, reason)
        if len(self.body.blocks) != 1:
            return refuse(self, f"the body must be one block, got {len(self.body.blocks)}")
        types = [str(argument.type) for argument in self.body.blocks[0].arguments]
        sizes = types[-2:].count("i32")
        pointers = types[: len(types) - sizes]
        if any(type_ not in ("!llvm.ptr", "!llvm.ptr<1>") for type_ in pointers):
            rule = "arguments must be tensor maps or global pointers, and last rows and matrices"
            return refuse(self, f"{rule}, got {types}")
        threads, cluster = self.threads.value, integers_of(self.cluster)
        if threads % 32 or not 32 <= threads <= 1024:
            return refuse(self, f"threads must be whole warps, 32 to 1024, got {threads}")
        if len(cluster) != 3 or min(cluster) < 1 or math.prod(cluster) > CLUSTER_MAX:
            rule = f"a cluster has three extents of at least 1, and up to {CLUSTER_MAX} CTAs"
            return refuse(self, f"{rule}, got {cluster}")
        if not verify_fallback(self, cluster):
            return False
        return _is_launch(self.launch.value, self.sym_name.value) or refuse(
            self,
            f"launch must be a JSON object with the entry {self.sym_name.value} and a schedule, "
            f"got {self.launch.value!r}",
        )


def _is_launch(text: str, entry: str) -> bool:
    try:
        launch = json.loads(text)
    except (ValueError, RecursionError):
        return False
    found = launch if isinstance(launch, dict) else {}
    return found.get("entry") == entry and isinstance(found.get("schedule"), dict)


class SpecialRegisterOp(Instruction, name="special_register"):
    """`value`: what the special register of that name in the PTX ISA holds."""

    register: ir.StringAttr
    value: ext.Result[I32] = ext.infer_result()

    def verify_invariants(self) -> bool:
        return verify_choice(self, "register", REGISTERS)


class ElectOp(Instruction, name="elect"):
    """`elected`: true in one lane of the warp."""

    elected: ext.Result[I1] = ext.infer_result()


class SetRegistersOp(Instruction, name="set_registers"):
    """From here on each thread of the warpgroup has `count` registers: "increase", "decrease"."""

    count: ir.IntegerAttr
    action: ir.StringAttr

    def verify_invariants(self) -> bool:
        count = self.count.value
        if count % 8:
            return refuse(self, f"count must be a multiple of 8, got {count}")
        return verify_range(self, "count", 24, 256) and verify_choice(self, "action", ACTIONS)


class ResidentOp(Instruction, name="resident"):
    """At least `ctas` find room on a multiprocessor: threads may have as many registers as that
    leaves them, else ptxas keeps them few (PTX ISA, .minnctapersm)."""

    ctas: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_range(self, "ctas", 1, CTAS_MAX)


class SharedAddressOp(Instruction, name="shared_address"):
    """`pointer`: byte `offset` of this CTA's dynamic shared memory."""

    offset: ext.Operand[I32]
    pointer: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "pointer", SHARED)


class MapaOp(Instruction, name="mapa"):
    """`remote`: the same place in the shared memory of the cluster's CTA of that rank."""

    address: ext.Operand[Any]
    rank: ext.Operand[I32]
    remote: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "address", SHARED) and verify_pointer(self, "remote", CLUSTER)


class LeaderBarrierOp(Instruction, name="leader_barrier"):
    """`leader`: the same barrier in the leader CTA of the pair, the one of even rank."""

    barrier: ext.Operand[Any]
    leader: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED) and verify_pointer(self, "leader", SHARED)


class TableOp(Instruction, name="table"):
    """`pointer`: a table of constants in global memory, one for all ops with that name."""

    symbol: ir.StringAttr
    values: Any
    pointer: ext.Result[Any]

    def verify_invariants(self) -> bool:
        values = self.values
        if not isinstance(values, ir.DenseIntElementsAttr):
            return refuse(self, f"values must be dense integers, got {values}")
        return verify_pointer(self, "pointer", GLOBAL)


class KeepOp(Instruction, name="keep"):
    """`after`: a copy of a vector of words, in registers that nothing writes before this point.

    An asynchronous instruction reads its registers until it is waited for.
    """

    before: ext.Operand[ir.VectorType]
    after: ext.Result[ir.VectorType]

    def verify_invariants(self) -> bool:
        given = self.before.type
        if len(given.shape) != 1 or str(given.element_type) != "i32":
            return refuse(self, f"before must be a vector of i32, got {given}")
        same = given == self.after.type
        return same or refuse(self, f"must give a {given}, got a {self.after.type}")


class PinOp(Instruction, name="pin"):
    """`after`: the same registers, which nothing reads before this point.

    LLVM does not know that an asynchronous instruction writes its results until it is waited for.
    """

    before: ext.Operand[Any]
    after: ext.Result[Any]

    def verify_invariants(self) -> bool:
        same = self.before.type == self.after.type
        return same or refuse(self, f"must give a {self.before.type}, got a {self.after.type}")


class ApproximateOp(Instruction, name="approximate"):
    """`result`: the function of an f32, by the approximate instruction of that name."""

    function: ir.StringAttr
    value: ext.Operand[F32]
    result: ext.Result[F32]

    def verify_invariants(self) -> bool:
        return verify_choice(self, "function", APPROXIMATIONS)


class NarrowOp(Instruction, name="narrow"):
    """`result`: two f32 rounded to a type of 8 bits or fewer, the first in the lower byte.

    Types of 6 bits take the lower bits of a byte each, and two of e2m1 share the lower byte, the
    first in its lower half. Numbers beyond the largest finite one become that; NaN stays NaN, of
    types without one it becomes the largest number (PTX ISA, cvt.rn.satfinite).
    """

    to: ir.StringAttr
    low: ext.Operand[F32]
    high: ext.Operand[F32]
    result: ext.Result[I16]

    def verify_invariants(self) -> bool:
        return verify_choice(self, "to", NARROW)
