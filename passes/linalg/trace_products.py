"""Finds the products of a function: one, or two of one A with one epilogue.

    %g = linalg.matmul(%a, %w)        →   %a · %w and %a · %v
    %u = linalg.matmul(%a, %v)
    return f(%g, %u)

What is multiplied twice is one product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...dialects.mlir import func, ir, linalg_ops
from ..base import refused, walk
from .trace_operand import Operand, is_elementwise, trace_operands
from .trace_scales import is_contraction


class Product(NamedTuple):
    """The ops that multiply A by B, all of them alike."""

    matmuls: tuple[Any, ...]
    a: Operand
    b: Operand


def find_matmuls(function: func.FuncOp) -> list[Any]:
    """The ops that multiply; there is at least one."""
    named = walk(function, (linalg_ops.MatmulOp, linalg_ops.BatchMatmulOp))
    found = named or [each for each in walk(function, linalg_ops.GenericOp) if is_contraction(each)]
    if not found:
        raise _refused_without(function)
    if not named and len(found) > 1:
        count = len(found)
        raise refused(function, f"the function must hold one linalg.matmul, got {count}")
    return found


def _refused_without(function: func.FuncOp) -> Exception:
    """What is said of a function without a product that is read."""
    sums = [each for each in walk(function, linalg_ops.GenericOp) if not is_elementwise(each)]
    if sums:
        rule = "a product must be a linalg.matmul or linalg.batch_matmul"
        return refused(sums[0], f"{rule}, got loops that sum; write it so, with indexing_maps")
    return refused(function, "the function must hold one linalg.matmul, got 0; multiply in it")


def find_products(function: func.FuncOp, matmuls: list[Any]) -> list[Product]:
    """One product, or two of one A and of B's that are as large and of one type."""
    found: dict[tuple[Operand, Operand], list[Any]] = {}
    for matmul in matmuls[1:]:
        if _takes_result(matmul, matmuls):
            rule = "must hold one product or two of one A"
            raise refused(matmul, f"{rule}, got one of another's result; compile it apart")
    for matmul in matmuls:
        found.setdefault(trace_operands(matmul), []).append(matmul)
    products = [Product(tuple(ops), *operands) for operands, ops in found.items()]
    if len(products) > 2:
        count = len(products)
        raise refused(function, f"must hold one product or two of one A, got {count}; split it")
    for second in products[1:]:
        _check_pair(products[0], second)
    return products


def _check_pair(first: Product, second: Product) -> None:
    matmul, b, b2 = second.matmuls[0], first.b, second.b
    if first.a != second.a:
        raise refused(matmul, "two products must have one A, got another; compile them apart")
    if (_sizes(b), b.element) != (_sizes(b2), b2.element):
        got = f"{b.type} and {b2.type}"
        raise refused(matmul, f"B's of one A must be alike, got {got}; compile them apart")


def _takes_result(matmul: Any, matmuls: list[Any]) -> bool:
    """Whether A or B is computed of the result of a product."""
    products = {each.operation for each in matmuls}
    seen, wanted = set(), list(matmul.operands)[:2]
    while wanted:
        owner = wanted.pop().owner
        if owner in products:
            return True
        if owner not in seen and not isinstance(owner, ir.Block):
            wanted += list(owner.operands)
        seen.add(owner)
    return False


def _sizes(operand: Operand) -> dict[str, int]:
    return dict(zip(operand.axes, operand.type.shape, strict=True))
