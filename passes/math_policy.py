"""The accuracy of functions in an epilogue: `tile.math` of a module, "fast" or "exact".

    exact    as float32 code computes them: within a few units in the last place of f32
    fast     by the hardware's approximations and short fits: an output of 16 or 8 bits is off by at
             most half a unit in its last place before it is rounded

A module without the attribute is fast where every output has 16 or 8 bits, else exact. Where no
epilogue has a function, the attribute would say nothing, and is refused.
"""

from __future__ import annotations

from typing import Any

from ..dialects.epilogue import EXACT, FAST, FUNCTIONS, NO_FUNCTION, POLICIES
from ..dialects.errors import OptionError
from ..dialects.mlir import ir
from ..dialects.tile.outputs import kept_by
from .base import MATH_ATTRIBUTE, refused, visit_all

NARROW = ("bf16", "f16", "f8E4M3FN", "f8E5M2")


def math_of(module: Any, outputs: list[ir.Type]) -> str:
    """The policy of a module whose outputs have elements of these types."""
    attributes = module.operation.attributes
    if MATH_ATTRIBUTE not in attributes:
        return FAST if all(str(each) in NARROW for each in outputs) else EXACT
    attribute = attributes[MATH_ATTRIBUTE]
    if not isinstance(attribute, ir.StringAttr) or attribute.value not in POLICIES:
        names = " or ".join(POLICIES)
        raise refused(module.operation, f"{MATH_ATTRIBUTE} must be {names}, got {attribute}")
    return attribute.value


def ask_for_math(module: Any, policy: str) -> None:
    """Let the module say which policy its functions have; OptionError where it has none."""
    if policy not in POLICIES:
        raise OptionError(f"math: must be {' or '.join(POLICIES)}, got {policy!r}; name one")
    if not _holds_functions(module):
        raise OptionError(f"math: {NO_FUNCTION}")
    _state(module, policy)


def _state(module: Any, policy: str) -> None:
    module.operation.attributes[MATH_ATTRIBUTE] = ir.StringAttr.get(policy)


def _holds_functions(module: Any) -> bool:
    """Whether any op of the module is a function that the policy is about."""
    found: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.extend([op.name] if op.name in FUNCTIONS else [])
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    visit_all(module, visit)
    return bool(found)


def state_math(module: Any, matmul: Any) -> None:
    """Write down the policy of a module whose epilogue has a function; refuse one that is asked for
    where it has none."""
    block = matmul.epilogue.blocks[0]
    outputs = [matmul.c.type.element_type, *(each.value.type for each in kept_by(block))]
    policy = math_of(module, outputs)
    if has_functions(block):
        _state(module, policy)
    elif MATH_ATTRIBUTE in module.operation.attributes:
        raise refused(matmul, f"{MATH_ATTRIBUTE}: {NO_FUNCTION}")


def has_functions(epilogue: ir.Block) -> bool:
    """Whether a region computes what the policy is about."""
    return any(op.operation.name in FUNCTIONS for op in epilogue.operations)
