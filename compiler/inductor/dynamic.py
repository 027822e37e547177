"""Products whose number of rows is a symbol: the kernels for any M, without an epilogue.

    mm(a [s, k], b)   →   tilewright::product(a, bᵀ, m="dynamic")

A few kernels share any M, and are compiled ahead. What follows the product is left to Inductor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ...dialects.errors import CompileError
from ...dialects.target import find_target
from ...runtime.errors import DeviceError
from ..calls.kernel_cache import describe_request, digest
from ..calls.kernels import How, buckets_of_rows
from ..calls.matmul_operator import product_operator
from ..calls.operands import operand_of, result_type, spec_of
from ..calls.placement import why_copied
from .ahead import Workers
from .describe import row_of
from .products import Product, aten, dtype_of, is_static, sizes_of
from .replace import call
from .report import Row
from .settings import Settings

ANY_M = "dynamic"


def take_dynamic(graph: fx.Graph, product: Product, chip: str, settings: Settings) -> Row:
    """Replace a product with a symbol for M, if there are kernels for it, and report on it."""
    row = row_of(product.node)
    row.reason = refusal(product)
    if row.reason:
        return row
    how = How(result_type(dtype_of(product.node)), chip, m=ANY_M)
    try:
        _compile(product, how, settings.processes)
        row.taken, row.reason = _judged(product, how)
    except (CompileError, DeviceError) as error:
        row.reason = str(error)
    if row.taken:
        _replace(graph, product, how)
    return row


def refusal(product: Product) -> str:
    """Why no kernel for any M computes a product; "" if one does."""
    if product.node.target is not aten.mm.default:
        return "a kernel for any M computes mm alone"
    rows, k = sizes_of(product.a)
    if type(k) is not int or not is_static(product.b):
        return "a size beside M is a symbol"
    strides = tuple(product.a.meta["val"].stride())
    return "" if strides == (k, 1) or type(rows) is int else "A has gaps between its rows"


def _compile(product: Product, how: How, processes: int) -> None:
    k, n = sizes_of(product.b)
    b = torch.empty_strided(
        (k, n), product.b.meta["val"].stride(), dtype=dtype_of(product.b), device="meta"
    ).mT
    reason = why_copied(b, how.target)
    if reason:
        raise CompileError(f"b: must be read in place, got a value whose {reason}")
    a = torch.empty(1, k, dtype=dtype_of(product.a), device="meta")
    spec = spec_of(operand_of("a", a), operand_of("b", b), how.out_dtype)
    jobs = {}
    for each in buckets_of_rows(spec, how.target, how):
        job = each.spec, find_target(how.target).chip, each.pipeline, how.math
        jobs[digest(describe_request(*job))] = job
    with Workers(len(jobs), processes) as workers:
        for made in workers.compile_all(jobs).values():
            if isinstance(made, CompileError):
                raise made


def _judged(product: Product, how: How) -> tuple[bool, str]:
    """Whether it is taken, and why: on a GPU by a race at the M that torch traced."""
    if product.node.meta["val"].device.type == "cpu":
        return True, "runs on the emulator, for any M"
    from .race import race_any_m

    ours, theirs = race_any_m(product, how)
    return ours <= theirs, f"{theirs / ours:.2f} of aten's speed at the traced M"


def _replace(graph: fx.Graph, product: Product, how: How) -> None:
    node = product.node
    with graph.inserting_before(node):
        turned: Any = call(graph, aten.permute.default, (product.b, [1, 0]))
        made = call(graph, product_operator, (product.a, turned, *how))
    made.meta.update({k: v for k, v in node.meta.items() if k not in made.meta})
    node.replace_all_uses_with(made)
    graph.erase_node(node)
