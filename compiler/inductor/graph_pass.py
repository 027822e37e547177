"""The pass that Inductor runs on each graph, forward and backward, before it makes kernels.

    find        products, and the region of each
    prepare     sources of kernels, each different one once
    choose      the kernels that share all rows of a region, in several processes
    compile     what the cache lacks, in the same processes
    judge       ours or Inductor's, for each different region
    replace     those that are taken

Whatever goes wrong in a region leaves it to Inductor, and one warning names it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from torch import fx
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.virtualized import V

from ...dialects.errors import CompileError
from ...dialects.target import TARGETS
from ...passes import PASSES
from ...runtime.bundles.bundle import Bundle
from ...runtime.bundles.several import KERNELS_MAX
from ...runtime.errors import DeviceError
from ..backend import versions
from ..own_sources import source_digest
from .ahead import Workers
from .chips import chip_of
from .collectives import collectives_of, sort_with
from .convolutions import Convolutions
from .describe import described, row_of, row_of_region
from .grow import regions_of
from .joint_pass import named_with, several
from .judge import Verdict, judge
from .kept_rows import KeptRows, kept
from .operator import enter, region_operator
from .products import Product, Refusal, product_of, sizes_of
from .ranks import agreed
from .recipe import recipe_of
from .recomposed import Recomposed
from .region import Region, alone
from .replace import Launch, call, replace
from .report import REPORT, Row
from .row_regions import AnyPrepared, Outline, RowsPrepared, outlined
from .settings import Settings
from .source import Prepared, prepare
from .symbols import Numbered, numbered

Made = TypeVar("Made")


class Found(NamedTuple):
    """A region with its line of the report, and what is compiled for it."""

    region: Region
    row: Row
    text: str
    prepared: AnyPrepared


class RegionPass(CustomGraphPass):
    """Replaces regions of a graph by kernels; `before` is a pass that runs ahead of it."""

    def __init__(self, settings: Settings | None = None, before: Any = None):
        self.settings = settings or Settings()
        self.before = before

    def __call__(self, graph: fx.Graph) -> None:
        for each in several(self.before):
            each(graph)
        take_regions(graph, self.settings)

    def uuid(self) -> Any:
        """What torch keys its cache of graphs by: our sources, tools, settings, and the chips that
        a user entered; None beside a user's passes, as nobody knows what they read."""
        if PASSES.entered():
            return None
        chips = repr(sorted(TARGETS.entered().items()))
        parts = [source_digest(), repr(sorted(versions().items())), self.settings.key(), chips]
        return named_with(self.before, *parts)


def take_regions(graph: fx.Graph, settings: Settings) -> None:
    """Replace what is found and judged worth it; enter every product in the report."""
    graph.eliminate_dead_code()  # a product that nothing reads has no output
    taken_apart, convolutions = Recomposed(graph), Convolutions(graph)
    try:
        moved = _taken(graph, settings)
    finally:
        convolutions.restore()
        taken_apart.restore()
    if moved:
        sort(graph, collectives_of(graph))


def _taken(graph: fx.Graph, settings: Settings) -> bool:
    """Whether a region was replaced; the graph is out of order then."""
    before = len(REPORT.rows)
    try:
        found, graphs = _judged_regions(graph, settings)
    except Exception as error:  # a fault of ours; the model runs without us
        reason = f"internal error: {type(error).__name__}: {error}"
        warnings.warn(f"tilewright: a graph is left to Inductor: {reason}", stacklevel=4)
        return False
    moved: dict[fx.Node, fx.Node] = {}
    taken = [each for each in found if each.row.taken]
    rows = kept(str(graph), REPORT.rows[before:]) if taken else None
    for each in taken:  # after all verdicts: a race copies the operators as they stand
        region = graphs.original(each.region) if graphs else each.region
        try:
            replace(graph, region, each.prepared.viewed, _launch(each.prepared, rows), moved)
        except CompileError as error:
            each.row.taken, each.row.reason = False, str(error)
            graph.eliminate_dead_code()
            continue
        rows = None
    return bool(moved)


def _judged_regions(graph: fx.Graph, settings: Settings) -> tuple[list[Found], Numbered | None]:
    """The regions of a graph with their verdicts, and the graph with numbers for its symbols, of
    which they are where it has some."""
    graphs = numbered(graph)
    products, chip = products_of_graph(graphs.first if graphs else graph, settings)
    products = _possible(products)
    if not products:
        return [], graphs
    found, bundles = compiled_regions(graph, products, chip, settings, graphs)
    _judge(found, bundles, settings)
    return found, graphs


def _possible(products: list[Product]) -> list[Product]:
    """The products that may be taken; the report says why the others are not."""
    found = []
    for each in products:
        if V.aot_compilation:
            why = "AOTInductor's programs have no Python to call us by"
        elif config.cpp_wrapper:
            why = "Inductor's code in C++ (cpp_wrapper) ends at operators that give lists"
        elif not each.is_static():
            why = "a size is a symbol that stands for no number"
        else:
            found.append(each)
            continue
        REPORT.add(row_of(each.multiplies, why))
    return found


def _judge(
    found: list[Found], bundles: dict[str, Bundle | CompileError], settings: Settings
) -> None:
    """Take or leave each region, in its row of the report; those that are alike share a verdict."""
    verdicts: dict[str, Verdict] = {}
    for each in found:
        key = each.prepared.key
        bundle = bundles[key]
        if isinstance(bundle, CompileError):
            leave(each.row, bundle)
        else:
            enter(key, bundle)
            if each.text not in verdicts:
                about = [each.text, key, settings.key()]
                verdicts[each.text] = agreed(about, partial(_judged, each, settings))
            _apply(verdicts[each.text], each.row)
        REPORT.add(each.row)


def compiled_regions(
    graph: fx.Graph,
    products: list[Product],
    chip: str,
    settings: Settings,
    graphs: Numbered | None = None,
) -> tuple[list[Found], dict[str, Bundle | CompileError]]:
    """The regions of a graph, and the kernel of each key, or why there is none.

    graphs: the graph with numbers for its symbols, of which the products are and then the regions.
    """
    kinds = {tuple(_kind(e) for e in (each.node, each.a, each.b)) for each in products}
    with Workers(len(kinds) * (KERNELS_MAX if graphs else 1), settings.processes) as workers:
        with REPORT.spending("regions"):
            regions = _regions(graphs.first if graphs else graph, products)
            found = Preparing(chip, settings, graphs, workers).of(regions)
        wanted = {each.prepared.key: each.prepared for each in found}
        jobs = {key: job for each in wanted.values() for key, job in each.jobs.items()}
        with REPORT.spending("kernels"):
            made = workers.compile_all(jobs)
            return found, {key: each.bundle_of(made) for key, each in wanted.items()}


def _launch(prepared: AnyPrepared, rows: KeptRows | None) -> Launch:
    known = prepared.key, recipe_of(prepared, rows)
    return lambda graph, given: call(graph, region_operator, (given, *known))


def _kind(node: fx.Node) -> Any:
    value = node.meta["val"]
    return value.dtype, tuple(value.shape), tuple(value.stride())


def _regions(graph: fx.Graph, products: list[Product]) -> list[Region]:
    """The regions of a graph; for a fault of ours the products alone."""
    try:
        return regions_of(graph, products)
    except Exception as error:
        reason = f"internal error: {type(error).__name__}: {error}"
        warnings.warn(f"tilewright: nothing is fused in a graph: {reason}", stacklevel=4)
        return [alone(each, reason) for each in products]


def products_of_graph(graph: fx.Graph, settings: Settings) -> tuple[list[Product], str]:
    """The products that kernels of a chip may compute; the others are reported on."""
    kept: list[Product] = []
    chip = ""
    for node in graph.nodes:
        product = product_of(node)
        if product is None:
            continue
        chip_of_it, reason = chip_of(node.meta["val"].device, settings)
        if isinstance(product, Refusal):
            reason = product.reason
        if reason:
            REPORT.add(row_of(node, reason=reason))
        elif isinstance(product, Product):
            kept.append(product)
            chip = chip_of_it
    return kept, chip


class Preparing(NamedTuple):
    """What the sources of a graph's kernels are made for, and by whom kernels are chosen."""

    chip: str
    settings: Settings
    graphs: Numbered | None
    workers: Workers

    def of(self, regions: list[Region]) -> list[Found]:
        """The sources of the regions' kernels; a region that has none is its product alone, or
        left."""
        known = self._known(regions)
        found = []
        for region in regions:
            text = self._text(region)
            first = known[text]
            if isinstance(first, CompileError) and len(region.nodes) > 1:
                found += self.of([alone(each, first.message) for each in region.products])
            elif isinstance(first, CompileError):
                REPORT.add(row_of(region.products[0].node, reason=first.message))
            else:
                row = row_of_region(region, first)
                if self.graphs is not None and isinstance(first, RowsPrepared):
                    row.sizes = _with_symbol(row.sizes, self.graphs.original(region))
                found.append(Found(region, row, text, first))
        return found

    def _known(self, regions: list[Region]) -> dict[str, AnyPrepared | CompileError]:
        """What is compiled for each different region; what takes long to choose is chosen by all
        processes first."""
        made: dict[str, Prepared | Outline | CompileError] = {}
        for region in regions:
            text = self._text(region)
            if text not in made:
                made[text] = _attempt(partial(self._outlined, region))
        self.workers.choose_all(each.choice for each in made.values() if isinstance(each, Outline))
        return {
            text: _attempt(each.prepared) if isinstance(each, Outline) else each
            for text, each in made.items()
        }

    def _outlined(self, region: Region) -> Prepared | Outline:
        if self._is_of_any_rows(region):
            assert self.graphs is not None
            return outlined(region, self.graphs, self.chip, self.settings.math)
        return prepare(region, self.chip, self.settings.math)

    def _text(self, region: Region) -> str:
        """What tells kernels apart."""
        return described(region) + ("\nof any rows" if self._is_of_any_rows(region) else "")

    def _is_of_any_rows(self, region: Region) -> bool:
        return self.graphs is not None and self.graphs.is_symbolic(region)


def _with_symbol(sizes: tuple[Any, ...], region: Region) -> tuple[Any, ...]:
    """The sizes of a report with the symbol that stands for the rows or matrices, or for K."""
    if all(type(each) is int for each in region.frame):
        return (*sizes[:-1], str(sizes_of(region.products[0].a)[-1]))
    return (str(region.frame[0]), *sizes[1:])


def _attempt(make: Callable[[], Made]) -> Made | CompileError:
    """What a call gives; for a fault of ours a refusal, since the model runs without us."""
    try:
        return make()
    except CompileError as error:
        return error
    except Exception as error:
        reason = f"internal error: {type(error).__name__}: {error}"
        warnings.warn(f"tilewright: a region is left to Inductor: {reason}", stacklevel=3)
        return CompileError(reason)


def leave(row: Row, error: Exception) -> None:
    """Leave a region to Inductor, with one warning, which equal ones share: it names no node."""
    reason = error.message if isinstance(error, CompileError) else error
    row.taken, row.reason = False, f"does not compile: {reason}"
    what = f"{row.product} {'x'.join(map(str, row.sizes))} {row.dtype}"
    warnings.warn(f"tilewright: {what} is left to Inductor: {reason}", stacklevel=3)


def _judged(each: Found, settings: Settings) -> Verdict:
    try:
        return judge(each.region, each.prepared, each.text, settings)
    except Exception as error:  # Inductor raises any kind, and the model runs without us
        reason = (str(error).splitlines() or [""])[0]
        if not isinstance(error, DeviceError | RuntimeError):
            reason = f"internal error: {type(error).__name__}: {reason}"
        warnings.warn(f"tilewright: {each.row.name} is left to Inductor: {reason}", stacklevel=3)
        return Verdict(False, f"cannot be measured: {reason}")


def _apply(verdict: Verdict, row: Row) -> None:
    row.taken, row.reason = verdict.taken, verdict.reason
    row.ours_us, row.inductor_us = verdict.ours_us, verdict.inductor_us
    row.at_least = verdict.at_least


def sort(graph: fx.Graph, collectives: list[fx.Node] | None = None) -> None:
    """Bring what was replaced into an order that runs, and drop what nothing reads.

    collectives: those of the graph in their order, which they keep.
    """
    from torch._inductor.pattern_matcher import stable_topological_sort

    if collectives:
        sort_with(graph, collectives)
    else:
        stable_topological_sort(graph)
    graph.eliminate_dead_code()
    graph.lint()
