"""ld, st and hints about caches (PTX ISA §9.7.9.8–§9.7.9.18)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...machine.events import Strong
from ...machine.memory import UINT
from ...machine.spaces import Space
from ...ptx import syntax
from ...ptx.accesses import READ, WRITE, MemoryAccess
from ...ptx.decode import Decoded
from ...ptx.lanes import FULL, WARP_SIZE
from ...ptx.operand_types import is_memory_type
from ...ptx.registry import Step, instruction
from ...ptx.values import RAW, Type

SPACES = (
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "const",
    "param",
    "param::entry",
    "param::func",
)
ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel", "volatile")
SCOPES = ("cta", "cluster", "gpu", "sys")
DEFAULT_SCOPE = "gpu"
CACHE_OPERATORS = {
    "ld": ("ca", "cg", "cs", "lu", "cv"), "ldu": (), "st": ("wb", "cg", "cs", "wt"),
}  # fmt: skip
INCOHERENT_OPERATORS = ("ca", "cg", "cs")
"""Those of ld.nc."""
EVICTION = (
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
)
EVICTION_L2 = ("L2::evict_normal", "L2::evict_first", "L2::evict_last")
PREFETCH = ("L2::64B", "L2::128B", "L2::256B")
_HINT = "L2::cache_hint"
MAX_VECTOR_BYTES = 16
MAX_GLOBAL_VECTOR_BYTES = 32

SpaceOf = Callable[..., Space]


def space_of(ins: Decoded, space: str | None, address: syntax.Operand) -> tuple[str, SpaceOf]:
    """(name for the report, function warp → `Space`) of an access."""
    if not isinstance(address, syntax.Address):
        ins.unmodelled("an operand that is not an address")
    if space in ("param", "param::entry", "param::func"):
        return _param_space(ins, space, address)
    table: dict[str | None, SpaceOf] = {
        None: lambda warp: warp.generic,
        "global": lambda warp: warp.launch.global_memory,
        "const": lambda warp: warp.launch.const_memory,
        "local": lambda warp: warp.local,
        "shared": lambda warp: warp.cta.shared_space,
        "shared::cta": lambda warp: warp.cta.shared_space,
        "shared::cluster": lambda warp: warp.cta.cluster_space,
    }
    _check_symbol(ins, space, address)
    return (space or "generic").partition("::")[0], table[space]


def _symbol_space(ins: Decoded, address: syntax.Operand) -> str | None:
    if not isinstance(address, syntax.Address):
        ins.unmodelled("an operand that is not an address")
    base = address.base
    if not isinstance(base, syntax.Symbol) or ins.scope.register(base.name):
        return None
    return ins.program.place(ins, base.name).space


def _name_of(address: syntax.Address) -> str:
    return address.base.name if isinstance(address.base, syntax.Symbol) else ""


def _check_symbol(ins: Decoded, space: str | None, address: syntax.Address) -> None:
    own = _symbol_space(ins, address)
    if own in (None, "const" if space is None else None, "global" if space is None else None):
        return
    if own != (space or "").partition("::")[0]:
        raise ins.trap(
            "address-space",
            f"{_name_of(address)} is a .{own} variable, accessed as"
            f" {'generic' if space is None else '.' + space}",
        )


def _param_space(ins: Decoded, space: str, address: syntax.Address) -> tuple[str, SpaceOf]:
    own = _symbol_space(ins, address)
    in_function = own == "call-param" or space == "param::func"
    if own is None and space == "param":
        in_function = not ins.scope.function.is_entry
    if own not in (None, "param", "call-param"):
        raise ins.trap(
            "address-space", f"{_name_of(address)} is a .{own} variable, accessed as .param"
        )
    if in_function:
        return "param", lambda warp: warp.local
    return "param", lambda warp: warp.launch.own_parameters


class Access:
    """The parts of a load or store that its modifiers name: type, vector, space."""

    def __init__(self, ins: Decoded, data: int, address: int):
        self.type: Type = ins.take_type()
        vector = ins.choice(("v2", "v4", "v8"))
        self.count = int(vector[1]) if vector else 1
        self.space = ins.choice(SPACES)
        self.incoherent = "nc" in ins.modifiers
        self.order, self.scope = _take_hints(ins)
        ins.finish_modifiers()
        if not is_memory_type(self.type):
            raise ins.trap("type", f"{ins.mnemonic} has no type .{self.type.name}")
        self.width = self.type.bytes
        if self.type.bits == 128:
            self.width, self.count = 8, 2
        self._check_size(ins)
        if self.size != MAX_GLOBAL_VECTOR_BYTES and set(EVICTION_L2) & set(ins.modifiers):
            raise ins.trap("operand", f"an L2 priority goes with 32 bytes, got {self.size}")
        self.elements = self._elements(ins, data)
        self.name, self.of = space_of(ins, self.space, ins.operand(address))

    def _elements(self, ins: Decoded, data: int) -> tuple[syntax.Operand, ...]:
        return ins.elements(data, 1 if self.type.bits == 128 else self.count)

    def _check_size(self, ins: Decoded) -> None:
        size = self.width * self.count
        if size > MAX_GLOBAL_VECTOR_BYTES or (
            size > MAX_VECTOR_BYTES and self.space not in (None, "global")
        ):
            ins.unmodelled(f"an access of {size} bytes a thread")

    @property
    def size(self) -> int:
        return self.width * self.count


def _take_hints(ins: Decoded) -> tuple[str, str]:
    """(order, scope) of an access, for the race checks; cache hints have no effect."""
    mapped = ins.flag("mmio")
    order, scope = ins.choice(ORDERS), ins.choice(SCOPES)
    operators = INCOHERENT_OPERATORS if "nc" in ins.modifiers else CACHE_OPERATORS[ins.mnemonic]
    for hints in (operators, EVICTION, EVICTION_L2, PREFETCH):
        ins.choice(hints)
    for flag in ("nc", "unified", "L2::cache_hint"):
        ins.flag(flag)
    if mapped and (order in (None, "weak", "volatile") or scope != "sys"):
        raise ins.trap("operand", f"{ins.mnemonic}.mmio is .relaxed.sys, got .{order}.{scope}")
    _check_order(ins, order, scope)
    if any(each.startswith("shared") for each in ins.modifiers) and (
        mapped or set(EVICTION) & set(ins.modifiers)
    ):
        raise ins.trap("operand", "neither .mmio nor priorities of L1 go with shared memory")
    if order == "volatile":
        return "relaxed", "sys"
    return order or "weak", scope or DEFAULT_SCOPE


def _check_order(ins: Decoded, order: str | None, scope: str | None) -> None:
    """Which orders and scopes a load or store may have (PTX ISA §9.7.9.8, §9.7.9.11)."""
    strong = order in ("relaxed", "acquire", "release")
    wrong = {"ld": "release", "ldu": "release", "st": "acquire"}[ins.mnemonic]
    if order in (wrong, "acq_rel"):
        raise ins.trap("operand", f"{ins.mnemonic} has no modifier .{order}")
    if strong != (scope is not None):
        missing = f"a scope beside .{order}" if strong else f"a memory order beside .{scope}"
        raise ins.trap("operand", f"{ins.mnemonic} needs {missing}")
    places = ins.modifiers
    if "nc" in places and (order not in (None, "weak") or "global" not in places):
        raise ins.trap("operand", "ld.nc is a weak load of .global")
    if order not in (None, "weak") and any(each.startswith(("param", "const")) for each in places):
        raise ins.trap("operand", f".{order} is not for .param and .const")
    if strong and "local" in places:
        raise ins.trap("operand", f".{order} is not for .local")


def ordered(
    step: Step,
    order: str,
    scope: str,
    *,
    updating: bool = False,
    comparing: bool = False,
    telling: bool = False,
) -> Step:
    """The same step as a strong access of a memory order and a scope (PTX ISA §8.7); `weak` ones
    stay so.

    updating: it is an atomic read-modify-write; comparing: one that compares and swaps; telling:
    one that returns the value that it has replaced.
    """
    if order == "weak":
        return step

    access = Strong(order, scope, updating, comparing, telling)

    def strong(warp, mask):
        launch = warp.launch
        launch.strong = access
        signal = step(warp, mask)
        launch.strong = None
        return signal

    return strong


def expand(values: np.ndarray, mask: np.ndarray, old: np.ndarray) -> np.ndarray:
    """A copy of `old` with `values`, one for each set lane, in the lanes of the mask."""
    merged = old.copy()
    merged[mask] = values
    return merged


def _receiver(ins: Decoded, where: syntax.Operand, type_: Type) -> Callable:
    """A function (warp, mask, values of the set lanes) that writes one destination register."""
    target = ins.target(where, type_, relaxed=True)
    if target is None:
        return lambda warp, mask, values: None
    own = ins.program.slot_dtype(target)
    wide = np.dtype(f"{'i' if type_.signed else 'u'}{own.itemsize}")
    narrow = np.dtype(f"{'i' if type_.signed else 'u'}{min(type_.bytes, 8)}")
    same = own.itemsize == narrow.itemsize

    def receive(warp, mask, values):
        if not same:
            values = values.view(narrow).astype(wide).view(own)
        warp.regs[target] = values if mask is FULL else expand(values, mask, warp.regs[target])

    return receive


@instruction("ld", "ldu", section="9.7.9.8")
def build_ld(ins: Decoded) -> Step:
    """ld{.order}{.scope}{.space}{.hints}{.vec}.type d, [a]{, policy}."""
    ins.expect_operands(3 if _HINT in ins.modifiers else 2)
    access = Access(ins, 0, 1)
    address, key = ins.address(1), (access.name, "read")
    ins.note_access(MemoryAccess(access.space or "generic", READ, access.size, address))
    if len(access.elements) == 1 and ins.is_sink(access.elements[0]):
        raise ins.trap("operand", "a result that cannot be `_`")
    receivers = [_receiver(ins, element, access.type) for element in access.elements]
    if len(receivers) > 1:
        return _judged(_ld_vector(access, address, key, receivers), access)
    (receive,) = receivers
    of, width, count, size = access.of, access.width, access.count, access.size

    def step(warp, mask):
        at = address(warp)
        if mask is not FULL:
            at = at[mask]
        warp.launch.report.memory_bytes[key] += size * len(at)
        receive(warp, mask, _load(warp, mask, of(warp), at, (width, count)))

    return _judged(step, access)


def _judged(step: Step, access: Access) -> Step:
    """The same load as the checks are to see it: strong, or of a cache that is not coherent."""
    if not access.incoherent:
        return ordered(step, access.order, access.scope)

    def incoherent(warp, mask):
        warp.launch.incoherent = True
        signal = step(warp, mask)
        warp.launch.incoherent = False
        return signal

    return incoherent


def _load(warp, mask, space: Space, at: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The values at the addresses of the lanes of a mask, which checks may ask for."""
    launch = warp.launch
    launch.mask = mask
    values = space.load(at, *shape)
    launch.mask = None
    return values


def _ld_vector(access: Access, address: Callable, key: tuple, receivers: list) -> Step:
    of, width, count, size = access.of, access.width, access.count, access.size

    def step(warp, mask):
        at = address(warp)
        if mask is not FULL:
            at = at[mask]
        warp.launch.report.memory_bytes[key] += size * len(at)
        columns = np.ascontiguousarray(_load(warp, mask, of(warp), at, (width, count)).T)
        for receive, column in zip(receivers, columns, strict=True):
            receive(warp, mask, column)

    return step


@instruction("st", section="9.7.9.11")
def build_st(ins: Decoded) -> Step:
    """st{.order}{.scope}{.space}{.hints}{.vec}.type [a], b{, policy}."""
    ins.expect_operands(3 if _HINT in ins.modifiers else 2)
    access = Access(ins, 1, 0)
    address, key = ins.address(0), (access.name, "write")
    ins.note_access(MemoryAccess(access.space or "generic", WRITE, access.size, address))
    values = _values(ins, access)
    of, width, count, size = access.of, access.width, access.count, access.size

    def step(warp, mask):
        at, data = address(warp), values(warp)
        if mask is not FULL:
            at, data = at[mask], data[mask]
        warp.launch.report.memory_bytes[key] += size * len(at)
        of(warp).store(at, data, width, count, (warp, mask))

    return ordered(step, access.order, access.scope)


def _values(ins: Decoded, access: Access) -> Callable:
    """A function warp → the data of all lanes, uint[32] or uint[32, count]."""
    if len(access.elements) == 1 and access.type.bits == 128:
        return ins.read(access.elements[0], access.type)
    raw = RAW[access.width * 8]
    reads = [_raw(ins.read(element, access.type, relaxed=True), access.type, raw)
             for element in access.elements]  # fmt: skip
    if len(reads) == 1:
        return reads[0]
    count, dtype = len(reads), UINT[access.width]

    def values(warp):
        rows = np.empty((WARP_SIZE, count), dtype)
        for column, read in enumerate(reads):
            rows[:, column] = read(warp)
        return rows

    return values


def _raw(read: Callable, type_: Type, raw: np.dtype) -> Callable:
    return read if type_.dtype == raw else lambda warp: read(warp).view(raw)
