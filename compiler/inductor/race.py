"""Measures a region's kernel against Inductor's code for the same operators.

Both are captured in CUDA graphs, with a small kernel between launches as norms stand between the
products of a model, and on inputs that together exceed the L2 cache.

Where Inductor does not tune products, it calls aten's and computes in another kernel what follows.
A region whose kernel beats aten's products alone is raced against no more than those: compiling the
rest would take the host longer than all else.

Our kernels read no bools. So converting one, as a mask of dropout, is a part of our time, and not
of Inductor's, whose kernels read the bool itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ...runtime.gpu.graphs import APART, measure_in_graphs
from .convolutions import STANDS_FOR, convolved
from .operator import kernel_of
from .products import aten, dtype_of
from .region import Region, is_constant, truth_behind
from .report import REPORT
from .row_regions import AnyPrepared
from .source import TRUTH, Input

ROUNDS = 7
REST = 2.0
"""How many times as long as each batch of launches the GPU rests: in a model other kernels do."""
COLD_BYTES = 256 * 2**20
SETS_MAX = 8
CODES = tuple(
    getattr(torch, name) for name in ("float8_e8m0fnu", "float4_e2m1fn_x2") if hasattr(torch, name)
)
"""Types that torch converts nothing to on a GPU."""
WITHOUT_US = {"post_grad_custom_post_pass": None, "triton.cudagraphs": False}


class Raced(NamedTuple):
    """Microseconds of our kernel and of what Inductor makes of the same operators.

    at_least: whether the latter are those of its products alone, to which others would be added.
    """

    ours_us: float
    inductor_us: float
    at_least: bool = False


def race(region: Region, prepared: AnyPrepared, options: Mapping[str, Any], enough: float) -> Raced:
    """The times of both; RuntimeError where either cannot be timed.

    options: those of Inductor. enough: the share of the other's time that ours may take to be as
    good as chosen.
    """
    sets = _sets([each.meta["val"] for each in _drawn(region)])
    if region.products[0].offsets is not None:
        sets = [_with_even_groups(each) for each in sets]
    kernel = kernel_of(prepared.key)
    given = [[_before(region, each, e) for e in prepared.inputs] for each in sets]

    def against(theirs: Callable[..., Any]) -> tuple[float, float]:
        contenders: dict[str, Callable[[int], Any]] = {
            "ours": lambda number: kernel(*(each() for each in given[number])),
            "inductor": lambda number: theirs(*sets[number]),
        }
        with torch.no_grad(), REPORT.spending("races"):
            found = measure_in_graphs(contenders, len(sets), ROUNDS, (APART,), REST)[APART]
        return found["ours"], found["inductor"]

    if not any(options.values()):
        fused = bool(region.fused())
        ours, theirs = against(products_of(region) if fused else module_of(region))
        if not fused or ours <= theirs * enough:
            return Raced(ours, theirs, fused)
    with REPORT.spending("Inductor's kernels"):
        whole = by_inductor(module_of(region), sets[0], options)
    return Raced(*against(whole))


def module_of(region: Region) -> fx.GraphModule:
    """The region's operators as a module of what it reads."""
    graph = fx.Graph()
    copied = {node: graph.placeholder(f"read{n}") for n, node in enumerate(_drawn(region))}
    for node in region.operands:
        if node not in copied:  # the conversion of a bool
            copied[node] = graph.node_copy(node, copied.__getitem__)
    copied |= {each.a: copied[region.reads[0]] for each in region.products}
    for node in region.nodes:
        for each in node.all_input_nodes:
            if each not in copied and is_constant(each):
                copied[each] = graph.node_copy(each, copied.__getitem__)
        if STANDS_FOR in node.meta:
            *bias, a, b = (copied[each] for each in node.all_input_nodes)
            copied[node] = convolved(graph, node, a, b, bias[0] if bias else None)
        else:
            copied[node] = graph.node_copy(node, copied.__getitem__)
    graph.output(tuple(copied[each] for each in region.outputs))
    return fx.GraphModule(torch.nn.Module(), graph)


def _drawn(region: Region) -> list[fx.Node]:
    """What a race begins with: what the region reads, and for conversions of bools these."""
    first = len(region.reads) - len(region.operands)
    return [*region.reads[:first], *map(truth_behind, region.operands)]


def products_of(region: Region) -> fx.GraphModule:
    """The region's products as aten's calls, without what is added to them."""
    graph = fx.Graph()
    copied = {node: graph.placeholder(f"read{n}") for n, node in enumerate(region.reads)}
    copied |= {each.a: copied[region.reads[0]] for each in region.products}
    made = {}
    for product in region.products:
        node = product.multiplies
        if node in made:
            continue
        if STANDS_FOR in node.meta:
            made[node] = convolved(graph, node, copied[product.a], copied[product.b], None)
        elif node.target in WITHOUT_ADDEND:
            pair = (copied[product.a], copied[product.b])
            made[node] = graph.call_function(WITHOUT_ADDEND[node.target], pair)
        else:
            made[node] = graph.node_copy(node, copied.__getitem__)
    graph.output(tuple(made.values()))
    return fx.GraphModule(torch.nn.Module(), graph)


WITHOUT_ADDEND = {aten.addmm.default: aten.mm.default, aten.baddbmm.default: aten.bmm.default}


def by_inductor(
    module: fx.GraphModule, inputs: Sequence[torch.Tensor], options: Mapping[str, Any]
) -> Callable[..., Any]:
    """The module as Inductor compiles it, with our pass left out.

    In a thread of its own: the compilation that asks for it has state in this one.
    """
    found: list[Any] = []

    def make() -> None:
        from torch._inductor.compile_fx import compile_fx

        patches = {**options, **WITHOUT_US}
        index = inputs[0].device.index
        try:
            if index is not None:
                torch.cuda.set_device(index)
            with torch.no_grad():
                compiled = compile_fx(module, list(inputs), config_patches=patches)
                compiled(*inputs)
            found.append(compiled)
        except Exception as error:  # Inductor raises any kind
            found.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        raise RuntimeError(f"Inductor: {found[0]}") from found[0]
    return found[0]


def _sets(values: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Random inputs, several sets of small ones."""
    one = [_random(each) for each in values]
    bytes_of_one = sum(each.untyped_storage().nbytes() for each in one)
    count = max(1, min(SETS_MAX, COLD_BYTES // max(bytes_of_one, 1)))
    return [one, *([_random(each) for each in values] for _ in range(count - 1))]


def _random(value: torch.Tensor) -> torch.Tensor:
    """Memory as a value of the graph has it, of small numbers."""
    sizes, strides = ([_number(e) for e in each] for each in (value.shape, value.stride()))
    place: Any = {"dtype": value.dtype, "device": value.device}
    apart = [1 if step == 0 else size for size, step in zip(sizes, strides, strict=True)]
    made = torch.empty_strided(apart, strides, **place)
    if value.dtype is torch.bool:
        return made.copy_(torch.rand(apart, device=value.device) < 0.5).expand(sizes)
    if not value.dtype.is_floating_point:
        return made.zero_().expand(sizes)
    if value.dtype in CODES:  # of numbers around 1
        made.view(torch.uint8).random_(110, 128)
        return made.expand(sizes)
    made.copy_(torch.randn(apart, dtype=torch.float32, device=value.device) / 4)
    return made.expand(sizes)


def _with_even_groups(values: list[torch.Tensor]) -> list[torch.Tensor]:
    """The inputs of a product of groups, with as many rows, or as much of K, for each group."""
    a, b, offsets, *beside = values
    groups, rows = offsets.shape[0], a.shape[0] if b.dim() == 3 else b.shape[0]
    ends = [rows * (group + 1) // groups for group in range(groups)]
    even = torch.tensor(ends, dtype=offsets.dtype, device=offsets.device)
    return [a, b, even, *beside]


def _number(size: Any) -> int:
    """A size; of a symbol the one that torch traced with."""
    return size if type(size) is int else int(size.node.hint)


def _before(
    region: Region, values: Sequence[torch.Tensor], given: Input
) -> Callable[[], torch.Tensor]:
    """What gives one argument of the kernel before each launch: a view that is there, or the
    conversion of a bool."""
    value, dtype = values[given.number], dtype_of(region.reads[given.number])
    if value.dtype is torch.bool:
        return lambda: _taken(value.to(dtype), given)
    taken = _taken(value, given)
    return lambda: taken


def _taken(value: torch.Tensor, given: Input) -> torch.Tensor:
    value = value[0] if given.is_first else value
    value = value.to(TRUTH) if given.is_truth else value
    value = value if given.columns is None else value[..., slice(*given.columns)]
    value = value.permute(given.order) if given.order else value
    return value if given.sizes is None else value.view(given.sizes)
