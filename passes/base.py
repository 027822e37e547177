"""What every pass is written with: options, its log, helpers to find and refuse ops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, fields
from types import UnionType
from typing import Any, ClassVar, Protocol, get_args

from ..dialects.errors import CompileError, OptionError, place_in
from ..dialects.mlir import ir, rewrite
from ..dialects.target import Target, find_target
from ..dialects.tile import KernelOp

DEFAULT_TARGET = "sm_100a"

# What a module says of itself.
TARGET_ATTRIBUTE = "tile.target"
MMA_ATTRIBUTE = "tile.mma_unit"  # its kernel multiplies by another MMA of its chip
ROWS_ATTRIBUTE = "tile.rows"  # the fewest and the most rows that a launch says
MULTIPLE_ATTRIBUTE = "tile.rows_multiple"  # of which those are multiples
MATH_ATTRIBUTE = "tile.math"  # how exact its functions are (`math_policy.py`)
ARGUMENTS_ATTRIBUTE = "tile.arguments"  # a torch module's names of them
CONTAINER_ATTRIBUTE = "gpu.container_module"  # MLIR's own: it holds a gpu.module
# What a kernel says of itself.
SOURCE_ATTRIBUTE = "tile.source"  # its inputs aren't the function's arguments in order
ARGUMENTS_MAX = 10_000
"""The most arguments of a source's function: as many as a bundle names."""
SWAPPED_ATTRIBUTE = "tile.swapped"  # its MMAs multiply tiles of b by tiles of a

COUNTS = frozenset({"operandSegmentSizes", "resultSegmentSizes"})
"""How many values each field of an op has."""
ATTRIBUTE_MAX = 2**63 - 1
"""The largest number of an attribute of 64 bits."""
_CHOICES: dict[Callable[[str], Any], tuple[str, ...]] = {}


@dataclass
class PassLog:
    """What the passes of one run say: `remarks` a user should read, `summary` what each did.

    `places` is off for a module that no user wrote, where a line and column would say nothing.
    """

    remarks: list[str] = field(default_factory=list)
    summary: list[str] = field(default_factory=list)
    places: bool = True

    def remark(self, op: Any, message: str) -> None:
        """Tell the user about a choice made at `op`."""
        location = location_of(op) if self.places else None
        prefix = f"{location}: " if location else ""
        self.remarks.append(f"{prefix}remark: {message}")

    def did(self, message: str) -> None:
        """Say in one line what the running pass did."""
        self.summary.append(message)


class Pass(Protocol):
    """A rewrite of a whole module; its dataclass fields are its options.

    A pass may name in `makes` ops that no pass before it leaves: by them a module that comes from a
    file is known to be through it (`compiler/levels.py`).
    """

    name: ClassVar[str]

    def __call__(self, module: ir.Module, log: PassLog) -> None: ...


def many(count: int, noun: str) -> str:
    """`1 store`, `2 stores`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def option(default: Any, parse: Callable[[str], Any], takes: str) -> Any:
    """A pass option: its default, its parser, and what it takes in words."""
    return field(default=default, metadata={"parse": parse, "takes": takes})


def auto_option(parse: Callable[[str], Any], takes: str) -> Any:
    """An option whose default is `auto` (None); other texts go to `parse`."""
    or_ = ", " if " or " in takes else " or "
    return option(None, lambda text: None if text == "auto" else parse(text), f"auto{or_}{takes}")


def make_pass(pass_class: type, options: dict[str, str]) -> Pass:
    """The pass with options given as text; raises `CompileError` for an unknown name or value."""
    known = {option_.name: option_ for option_ in fields(pass_class)}
    values = {}
    for name, text in options.items():
        if name not in known:
            takes = ", ".join(known) or "none"
            raise OptionError(f"{pass_class.name}: unknown option {name!r}; it takes {takes}")
        values[name] = _read(pass_class.name, known[name], text)
    return pass_class(**values)


def _read(pass_name: str, option_: Any, text: str) -> Any:
    try:
        return option_.metadata["parse"](text)
    except ValueError as error:
        takes = option_.metadata["takes"]
        raise OptionError(
            f"{pass_name}: option {option_.name} must be {takes}, got {text!r}"
        ) from error


def one_of(*choices: str) -> Callable[[str], str]:
    """A parser that takes one of `choices`."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(text)
        return text

    _CHOICES[parse] = choices
    return parse


def parse_bool(text: str) -> bool:
    """`true` or `false`."""
    return one_of("true", "false")(text) == "true"


_CHOICES[parse_bool] = ("true", "false")


def choices_of(pass_class: type) -> dict[str, tuple[str, ...]]:
    """For each option with a fixed set of values, these values."""
    parsers = {option_.name: option_.metadata["parse"] for option_ in fields(pass_class)}
    return {name: _CHOICES[parse] for name, parse in parsers.items() if parse in _CHOICES}


def parse_extents(rank: int) -> Callable[[str], tuple[int, ...]]:
    """A parser of `rank` positive integers joined by `x`, as in 128x256x64."""

    def parse(text: str) -> tuple[int, ...]:
        extents = tuple(parse_positive(part) for part in text.split("x"))
        if len(extents) != rank:
            raise ValueError(text)
        return extents

    return parse


def parse_count(text: str) -> int:
    """0 or a positive integer."""
    return 0 if text == "0" else parse_positive(text)


def parse_positive(text: str) -> int:
    """A positive integer that an attribute holds, in digits alone."""
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= ATTRIBUTE_MAX:
        raise ValueError(text)
    return int(text)


def location_of(op: Any) -> str | None:
    """`file:line:col` of an op, of the innermost call where there are several; None for no file."""
    return place_in(op.location)


def refused(op: Any, rule: str) -> CompileError:
    """The error that `op` violates `rule`, with the location of the op."""
    return CompileError(f"{op.operation.name}: {rule}", location_of(op))


def require(op: Any, broken: str | None, cure: str = "", where: str = "") -> None:
    """Raise an error if a rule of `dialects.legality` says that `op` violates it; `where` is the
    pass."""
    if broken is not None:
        raise refused(op, f"{where}{broken}{'; ' if cure else ''}{cure}")


def refuse_unread(op: Any, known: Collection[str]) -> None:
    """Raise an error if an op has unknown attributes."""
    for name in op.operation.attributes:
        if name not in known:
            raise refused(op, f"attributes: nothing reads {name!r}; take it off the op")


def attributes_of(op: Any) -> dict[str, ir.Attribute]:
    """The op's attributes by name, inherent ones included."""
    attributes = op.operation.attributes
    return {name: attributes[name] for name in attributes}


def visit_all(root: Any, visit: Callable[[ir.Operation], ir.WalkResult]) -> None:
    """Let `visit` see `root` and every operation under it, in program order.

    An interruption meanwhile, of which MLIR makes an error with its name, comes out as itself.
    """
    try:
        root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    except RuntimeError as error:
        if str(error).rstrip().rpartition("\n")[2].startswith(KeyboardInterrupt.__name__):
            raise KeyboardInterrupt from None
        raise


def walk(root: Any, op_class: type | UnionType | tuple[type, ...]) -> list[Any]:
    """Every op of `op_class` under `root`, in program order."""
    return [op.opview for op in _named(root, _names_of(op_class))]


def operations_named(root: Any, *names: str) -> list[ir.Operation]:
    """Every operation of those names under `root`, in program order."""
    return [op.operation for op in _named(root, names)]


def _named(root: Any, names: Collection[str]) -> list[Any]:
    """MLIR finds them as the roots of patterns that never apply: to let Python see every op takes
    some forty times as long."""
    found: list[Any] = []

    def note(op: Any, _: Any) -> bool:
        found.append(op.operation)
        return True  # it does not apply

    patterns = rewrite.RewritePatternSet(root.operation.context)
    for name in names:
        patterns.add(name, note)
    rewrite.walk_and_apply_patterns(root.operation, patterns.freeze())
    return _in_program_order(found)


def _in_program_order(found: list[ir.Operation]) -> list[ir.Operation]:
    """Sorts operations that MLIR visited after the operations inside them."""
    ordered: list[ir.Operation] = []
    for op in found:
        at = len(ordered)
        while len(op.regions) and at and _holds(op, ordered[at - 1]):
            at -= 1
        ordered.insert(at, op)
    return ordered


def _holds(outer: ir.Operation, op: ir.Operation) -> bool:
    above = op.parent
    while above is not None and above.operation != outer:
        above = above.operation.parent
    return above is not None


@functools.cache
def _names_of(op_class: type | UnionType | tuple[type, ...]) -> frozenset[str]:
    """The names of the ops of one or several classes, and of their subclasses."""
    several = op_class if isinstance(op_class, tuple) else get_args(op_class)
    classes: Any = several or (op_class,)
    named = {each.OPERATION_NAME for each in classes if hasattr(each, "OPERATION_NAME")}
    return frozenset(named).union(
        *(_names_of(sub) for each in classes for sub in each.__subclasses__())
    )


def defining_op(value: ir.Value) -> Any:
    """The op that defines a value, as an instance of its class."""
    return ir.OpResult(value).owner.opview


def operations(operation: ir.Operation) -> Iterator[Any]:
    """Every op under `operation`, in program order."""
    for region in operation.regions:
        for block in region:
            for op in list(block.operations):
                yield op
                if len(op.regions):  # few have any, and a generator for each op takes half the time
                    yield from operations(op.operation)


def target_of(module: ir.Module) -> Target:
    """The target for which the module is compiled, with the MMA unit that its kernel uses."""
    chip = _text_of(module, TARGET_ATTRIBUTE, "a chip's name")
    try:
        target = find_target(DEFAULT_TARGET if chip is None else chip)
    except OptionError as error:
        raise refused(module.operation, f"{TARGET_ATTRIBUTE}: {error.message}") from error
    unit = _text_of(module, MMA_ATTRIBUTE, "the name of an MMA")
    return target.using(unit) if unit else target


def use_mma(module: ir.Module, name: str) -> None:
    """Let the module's kernel use the MMA unit `name`, which its chip must have."""
    target = target_of(module).using(name)
    name, attributes = target.mma.name, module.operation.attributes
    if find_target(target.chip).mma.name == name:
        if MMA_ATTRIBUTE in attributes:
            del attributes[MMA_ATTRIBUTE]
    else:
        attributes[MMA_ATTRIBUTE] = ir.StringAttr.get(name)


def _text_of(module: ir.Module, name: str, what: str) -> str | None:
    """A string attribute of the module, or None."""
    attributes = module.operation.attributes
    if name not in attributes:
        return None
    text = attributes[name]
    if not isinstance(text, ir.StringAttr):
        raise refused(module.operation, f"{name} must be {what}, got {text}")
    return ir.StringAttr(text).value


def the_kernel(module: ir.Module, pass_name: str) -> KernelOp:
    """The module's one `tile.kernel`."""
    kernels = [op for op in module.body.operations if isinstance(op, KernelOp)]
    if len(kernels) != 1:
        raise CompileError(
            f"{pass_name}: the module must hold one tile.kernel, got {len(kernels)}; "
            "run tiling first"
        )
    return kernels[0]


def kernel_around(op: Any) -> KernelOp:
    """The kernel that contains an op."""
    around = op.operation.parent.opview
    while not isinstance(around, KernelOp):
        around = around.operation.parent.opview
    return around


def is_swapped(kernel: KernelOp) -> bool:
    """Whether a kernel's MMAs multiply tiles of b by those of a, so that its accumulators are of
    Cᵀ."""
    return SWAPPED_ATTRIBUTE in kernel.operation.attributes
