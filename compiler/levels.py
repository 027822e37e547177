"""How far a module has been lowered, by its ops, and which passes may still run on it.

    linalg on tensors      nothing has run
    tile.matmul            normalize
    tile.kernel            tiling; what has run after it, each pass sees for itself
    with sm.team           assign-threads, the first of the lowering
    with sm.shared_memory  plan-memory
    with launch_dependents expand-loops
    with await_grids       pipes-to-barriers
    sm.kernel              select-instructions
    gpu.module             lower-to-nvvm: nothing is left but the translation to PTX

A pass names in `makes` the ops that nothing before it leaves: every pass that does is a level.
"""

from __future__ import annotations

from ..dialects.errors import OptionError
from ..dialects.mlir import ir
from ..dialects.target import find_target
from ..passes import LOWERING, PASSES
from ..passes.base import (
    ARGUMENTS_ATTRIBUTE,
    CONTAINER_ATTRIBUTE,
    DEFAULT_TARGET,
    MATH_ATTRIBUTE,
    MMA_ATTRIBUTE,
    ROWS_ATTRIBUTE,
    TARGET_ATTRIBUTE,
    operations,
    refused,
    target_of,
)
from ..passes.linalg.accepted_ops import MODULE, READ, check_attributes

FIRST_OF_KERNELS = "tiling"
OF_MODULE = {**MODULE, ARGUMENTS_ATTRIBUTE: READ}
OF_LOWERED = {
    name: use
    for name, use in (OF_MODULE | {CONTAINER_ATTRIBUTE: READ}).items()
    if name not in (MMA_ATTRIBUTE, MATH_ATTRIBUTE, ROWS_ATTRIBUTE)
}
"""What a lowered kernel's module says: `lower-to-nvvm` has done what the others ask for."""
_MAKERS = {op: each.name for each in PASSES.values() for op in getattr(each, "makes", ())}


def level_of(module: ir.Module) -> str | None:
    """The last pass of the pipeline whose ops the module holds; None for linalg."""
    names = {op.operation.name for op in operations(module.operation)}
    passes = [_MAKERS[name] for name in names & _MAKERS.keys()]
    return max(passes, key=_place, default=None)


def _place(name: str) -> int:
    """Where a pass stands in the order of all; after them where somebody has added it since."""
    return list(PASSES).index(name)


def is_kernel(level: str | None) -> bool:
    """Whether the module is a kernel, whose schedule somebody has chosen, for one chip."""
    return level is not None and _place(level) >= _place(FIRST_OF_KERNELS)


def is_lowering(name: str) -> bool:
    """Whether a pass is of the lowering, after which no schedule can be changed."""
    return PASSES[name] in LOWERING


def is_pending(name: str, level: str | None) -> bool:
    """Whether a pass may still run on a module of that level."""
    return level is None or _place(name) > _place(level)


def check_pending(names: list[str], level: str | None) -> None:
    """Refuse a pass that belongs before what the module holds, or before what it follows."""
    lowered = ""
    for name in names:
        if lowered and not is_lowering(name):
            rule = f"pipeline: {name} must come before {lowered}, which begins the lowering"
            raise OptionError(f"{rule}, got it after; exchange them")
        lowered = lowered or (name if is_lowering(name) else "")
        if not is_pending(name, level):
            left = ", ".join(each for each in PASSES if is_pending(each, level)) or "none"
            raise OptionError(
                f"pipeline: a module that is through {level} takes passes that come after it "
                f"({left}), got {name}; leave it out"
            )


def check_alone(module: ir.Module, level: str | None) -> None:
    """Refuse what stands beside a kernel, and what its module says that nobody reads."""
    if level is not None:
        lowered = level == LOWERING[-1].name
        check_attributes(module.operation, OF_LOWERED if lowered else OF_MODULE)
    others = list(module.body.operations)[1:] if is_kernel(level) else []
    if others:
        raise refused(others[0], "a kernel must be alone in its module, got another op; remove it")


def settle_target(module: ir.Module, level: str | None, asked: str | None) -> str:
    """The chip to compile for, which the module then names: `asked`, its own, or the default.

    A kernel is for one chip and must say for which.
    """
    attributes = module.operation.attributes
    own = target_of(module).chip if TARGET_ATTRIBUTE in attributes else None
    if is_kernel(level) and own is None and asked is None:
        rule = f'a kernel\'s module must name its chip, as {TARGET_ATTRIBUTE} = "sm_100a", got none'
        raise refused(module.operation, f"{rule}; add it, or give --target")
    if is_kernel(level) and asked is not None and own not in (None, find_target(asked).chip):
        rule = f"must be {own}, which the kernel is made for, got {asked}"
        raise OptionError(f"target: {rule}; compile its source for {asked}")
    chip = find_target(asked or own or DEFAULT_TARGET).chip
    attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(chip)
    return chip
