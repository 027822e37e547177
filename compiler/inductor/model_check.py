"""Every product of a model for one chip: found, compiled, verified on the emulator, and bundled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...dialects.errors import CompileError
from ...runtime.bundles.bundle import Bundle
from .ahead import Workers
from .check import Checked, check_region
from .collect import graphs_of
from .describe import described, row_of, row_of_region
from .grow import regions_of
from .products import Product, product_of
from .region import Region, alone
from .report import Row
from .source import Prepared, prepare


@dataclass
class Part:
    """One kind of product in a model: its line, and its kernel if there is one."""

    row: Row
    region: Region | None = None
    prepared: Prepared | None = None
    bundle: Bundle | None = None
    checked: Checked | None = None


def parts_of(
    model: Callable[..., Any],
    inputs: Sequence[Any],
    target: str,
    *,
    backward: bool = False,
    math: str = "",
    processes: int = 0,
) -> list[Part]:
    """The products of a model, equal ones once with their count, and their kernels for a chip."""
    found: dict[str, Part] = {}
    for graph in graphs_of(model, inputs, backward):
        for text, part in _parts(graph, target, math):
            if text in found:
                found[text].row.count += 1
            else:
                found[text] = part
    prepared = {p.prepared.key: p.prepared for p in found.values() if p.prepared}
    tasks = {k: (p.source, p.target, p.pipeline, p.math) for k, p in prepared.items()}
    with Workers(len(tasks), processes) as workers:
        bundles = workers.compile_all(tasks)
    for part in found.values():
        if part.prepared is not None:
            _enter(part, bundles[part.prepared.key])
    return list(found.values())


def _parts(graph: Any, target: str, math: str) -> Iterator[tuple[str, Part]]:
    products = [each for each in map(product_of, graph.nodes) if each is not None]
    taken = [each for each in products if isinstance(each, Product)]
    for each in products:
        if not isinstance(each, Product):
            row = row_of(each.node, each.reason)
            yield str(row), Part(row)
    for region in regions_of(graph, taken):
        yield from _part(region, target, math)


def _part(region: Region, target: str, math: str) -> Iterator[tuple[str, Part]]:
    """The region's, or where it has no kernel those of its products alone."""
    try:
        prepared = prepare(region, target, math)
    except CompileError as error:
        if len(region.nodes) > 1:
            for product in region.products:
                yield from _part(alone(product, error.message), target, math)
            return
        row = row_of(region.products[0].node, error.message)
        yield str(row), Part(row)
        return
    yield described(region), Part(row_of_region(region, prepared), region, prepared)


def _enter(part: Part, bundle: Bundle | CompileError) -> None:
    if isinstance(bundle, CompileError):
        part.row.reason = f"does not compile: {bundle}"
    else:
        part.bundle, part.row.taken, part.row.reason = bundle, True, "compiles"
        part.row.pipeline = bundle.manifest["pipeline"]  # of what came in a schedule's place, too


def verify(part: Part, rows: int) -> Checked | None:
    """Run a part's kernel on the emulator in `rows` rows; None where it has none."""
    if part.bundle is None or part.region is None or part.prepared is None:
        return None
    part.checked = check_region(part.region, part.prepared, rows)
    return part.checked
