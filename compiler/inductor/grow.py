"""Regions: a product with the elementwise operators behind it that one kernel computes, too.

    grow      take every operator behind the product that is elementwise and reads nothing that
              depends on an operator left out
    cut       of the operators in their order, keep as many as make memory traffic least
    pair      a second product of the same A joins where the region reads it alone (SwiGLU)

What leaves a region is an output of its kernel: C, and one more where two values are read outside,
as the pre-activation that backward needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from ..importers.aten_elements import MLIR_TYPES, is_known
from .frames import framed, in_frame, viewed
from .products import Product, aten, dtype_of, is_static, product_of, sizes_of

OUTPUTS_MAX = 2
VIEWS = (aten.reshape.default, aten.view.default, aten._unsafe_view.default, aten.alias.default)
VIEWS_OF_ONE = (aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default)
CONVERT = torch.ops.prims.convert_element_type.default
SAME = (*VIEWS, *VIEWS_OF_ONE, aten.clone.default, aten.detach.default, aten.expand.default)
CONSTANTS = (aten.full.default, aten.scalar_tensor.default)
TURNS = (aten.permute.default, aten.t.default, aten.transpose.int, aten.numpy_T.default)
NO_ELEMENTS = (*TURNS, aten.new_full.default)
STORED = (torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn, torch.float8_e5m2)
READ = (torch.bfloat16, torch.float16, torch.float32)


@dataclass
class Region:
    """One kernel's part of a graph.

    nodes: the products, the operators behind them and the views between, in the graph's order.
    operands: what they read beside the products' A and B. outputs: the values that leave the
    region. stop: which operator it does not take, and why.
    """

    products: list[Product]
    nodes: list[fx.Node]
    operands: list[fx.Node] = field(default_factory=list)
    outputs: list[fx.Node] = field(default_factory=list)
    stop: str = ""

    @property
    def frame(self) -> tuple[int, ...]:
        """The sizes of every value, as the kernel sees it."""
        return sizes_of(self.products[0].node)

    @property
    def reads(self) -> list[fx.Node]:
        """What the kernel reads: A, each B, the offsets of groups, then the operands."""
        first = self.products[0]
        offsets = [] if first.offsets is None else [first.offsets]
        return [first.a, *(each.b for each in self.products), *offsets, *self.operands]

    def fused(self) -> list[str]:
        """The operators behind the product, views and conversions left out."""
        skipped = {CONVERT, *SAME, *CONSTANTS}
        taken = {each.node for each in self.products}
        return [name_of(n) for n in self.nodes if n not in taken and n.target not in skipped]


def name_of(node: fx.Node) -> str:
    """An operator as torch calls it, without its namespace."""
    return str(getattr(node.target, "overloadpacket", node.target)).split(".")[-1]


def regions_of(graph: fx.Graph, products: Sequence[Product]) -> list[Region]:
    """A region for each of the products that none before it has taken."""
    order = {node: place for place, node in enumerate(graph.nodes)}
    owner: dict[fx.Node, Region] = {}
    found = []
    for product in products:
        if product.node in owner:
            continue
        region = _grown(product, order, owner)
        if len(region.nodes) > 1:
            region = _kept(region, order, owner)
        owner.update(dict.fromkeys(region.nodes, region))
        found.append(region)
    return found


def _kept(region: Region, order: Mapping[fx.Node, int], owner: Mapping[fx.Node, Region]) -> Region:
    """The region, or its product alone where reading all at once would be too early or too late."""
    first = region.products[0]
    if in_circle(region, owner):
        return alone(first, "another region needs what this one makes, and the reverse")
    begin, end = (order[region.nodes[place]] for place in (0, -1))
    read = {_base(each) for each in region.reads}
    for node in list(order)[begin:end]:
        if changes(node) and read & {_base(each) for each in node.all_input_nodes}:
            return alone(first, f"{name_of(node)} changes what the region reads meanwhile")
    return region


def changes(node: fx.Node) -> bool:
    """Whether an operator changes a tensor in place."""
    return bool(getattr(getattr(node.target, "_schema", None), "is_mutable", False))


def _base(node: fx.Node) -> fx.Node:
    """What a value is a view of."""
    while node.target in (*VIEWS, *VIEWS_OF_ONE, *TURNS):
        node = node.args[0]  # type: ignore[assignment]
    return node


def alone(product: Product, stop: str = "") -> Region:
    """The region of a product and nothing else."""
    operands = list(dict.fromkeys(product.beside))
    return Region([product], [product.node], operands, [product.node], stop)


def _grown(
    product: Product, order: Mapping[fx.Node, int], owner: Mapping[fx.Node, Region]
) -> Region:
    if product.offsets is not None:
        return alone(product, "an epilogue of groups is left to Inductor")
    frame = sizes_of(product.node)
    taken, others, stop = {product.node}, set[fx.Node](), ""
    grown: list[fx.Node] = []
    for node in _behind(product.node, order):
        reads = node.all_input_nodes
        touches = any(each in taken for each in reads)
        if not touches and not any(each in others for each in reads):
            continue
        reason = _refusal(node, product.node, taken, others, owner, frame)
        if reason:
            others.add(node)
            if touches and not _is_boundary(node):
                stop = stop or f"{name_of(node)}: {reason}"
        else:
            taken.add(node)
            grown.append(node)
    kept = _cut(product.node, grown)
    region = _closed([product], [product.node, *kept], stop)
    return _absorbed(_paired(region, order, owner, others), order, owner)


def _behind(node: fx.Node, order: Mapping[fx.Node, int]) -> list[fx.Node]:
    """What depends on a node, in the graph's order."""
    found: set[fx.Node] = set()
    waiting = list(node.users)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += each.users
    return sorted(found, key=order.__getitem__)


def _refusal(
    node: fx.Node,
    product: fx.Node,
    taken: set[fx.Node],
    others: set[fx.Node],
    owner: Mapping[fx.Node, Region],
    frame: tuple[int, ...],
) -> str:
    """Why an operator cannot be in the region; "" if it can."""
    if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
        return "is no operator of one tensor"
    if node in owner:
        return "belongs to another region"
    if any(each in others for each in node.all_input_nodes):
        return "reads what is computed outside"
    if changes(node):
        return "changes a tensor in place"
    if not _is_elementwise(node):
        return "is not elementwise"
    if not is_static(node):
        return "has sizes that are symbols"
    if dtype_of(node) not in MLIR_TYPES:
        return f"computes {dtype_of(node)}"
    if not in_frame(sizes_of(node), frame):
        return f"has the sizes {list(sizes_of(node))}"
    if node.target is CONVERT and dtype_of(node) is torch.float64:
        return "computes float64"
    outside = [each for each in node.all_input_nodes if each not in taken]
    reasons = (_operand_refusal(each, node, product, frame) for each in outside)
    return next((each for each in reasons if each), "")


def _is_elementwise(node: fx.Node) -> bool:
    if node.target in SAME or node.target is CONVERT:
        return True
    return node.target not in NO_ELEMENTS and is_known(node.target)


def _operand_refusal(
    operand: fx.Node, node: fx.Node, product: fx.Node, frame: tuple[int, ...]
) -> str:
    """Why a kernel cannot read an operand of an operator."""
    value = operand.meta.get("val")
    if not isinstance(value, torch.Tensor) or not is_static(operand):
        return "reads what is no tensor of known sizes"
    if is_constant(operand):
        return ""
    if value.dtype not in READ:
        return f"reads {value.dtype}"
    if value.device != product.meta["val"].device:
        return f"reads a tensor on {value.device}"
    sizes = framed(sizes_of(operand), sizes_of(node), frame)
    if sizes is None:
        return f"reads {list(value.shape)}, which has some of the rows' dims and not all"
    if viewed(value, sizes) is None:
        return f"reads a tensor with strides {list(value.stride())}, which would be copied"
    return ""


def is_constant(node: fx.Node) -> bool:
    """Whether a value is one number, which the kernel holds itself."""
    return node.target in CONSTANTS and not node.all_input_nodes


def _cut(product: fx.Node, grown: Sequence[fx.Node]) -> list[fx.Node]:
    """The operators from the first on that make the least traffic; the most of equal ones."""
    best, least = 0, _traffic(product, [], grown)
    for count in range(1, len(grown) + 1):
        if is_same(grown[count - 1]):  # a view that leaves the region costs nothing outside
            continue
        cost = _traffic(product, grown[:count], grown[count:])
        if cost is not None and (least is None or cost <= least):
            best, least = count, cost
    return list(grown[:best])


def _traffic(product: fx.Node, kept: Sequence[fx.Node], left: Sequence[fx.Node]) -> int | None:
    """Bytes that are written and read behind the sums; None where no kernel stores the outputs.

    Inductor computes an elementwise operator where it is read, and writes only what a kernel of
    another kind or the caller reads.
    """
    nodes = [product, *kept]
    outputs = outputs_of(nodes)
    if len(outputs) > OUTPUTS_MAX or any(dtype_of(each) not in STORED for each in outputs):
        return None
    inside = set(nodes)
    total = 0
    for each in outputs:
        fusible = any(not _is_boundary(user) for user in _readers(each, inside))
        total += _bytes(each) * (2 if fusible else 1)
    for each in left:
        if not is_same(each) and any(_is_boundary(user) for user in _readers(each, inside)):
            total += _bytes(each)
    return total


def _is_boundary(node: fx.Node) -> bool:
    """Whether a node reads its arguments from memory: a product, the caller, what is no Inductor
    kernel."""
    return node.op == "output" or product_of(node) is not None


def _readers(node: fx.Node, inside: set[fx.Node]) -> list[fx.Node]:
    """Who reads a value outside, through views that cost nothing."""
    found = []
    for user in node.users:
        if user.target in (*VIEWS, *VIEWS_OF_ONE, aten.permute.default):
            found += _readers(user, inside)
        elif user not in inside:
            found.append(user)
    return found


def _bytes(node: fx.Node) -> int:
    value = node.meta["val"]
    return value.numel() * value.itemsize


def is_same(node: fx.Node) -> bool:
    """Whether an operator leaves the elements as they are."""
    return node.target in SAME


def source_of(node: fx.Node, inside: Iterable[fx.Node]) -> fx.Node:
    """The operator of the region that computes what views of it show."""
    inside = set(inside)
    while is_same(node) and node.args[0] in inside:
        node = node.args[0]  # type: ignore[assignment]
    return node


def outputs_of(nodes: Sequence[fx.Node]) -> list[fx.Node]:
    """The values that are read outside, each once however it is viewed."""
    inside = set(nodes)
    leaving = [node for node in nodes if any(user not in inside for user in node.users)]
    return list(dict.fromkeys(source_of(node, inside) for node in leaving))


def _closed(products: list[Product], nodes: list[fx.Node], stop: str) -> Region:
    """The region of these nodes, with its operands and outputs."""
    inside = set(nodes)
    of_products = {each.node: each for each in products}
    operands: list[fx.Node] = []
    for node in nodes:
        product = of_products.get(node)
        read = product.beside if product else node.all_input_nodes
        operands += [each for each in read if each not in inside and not is_constant(each)]
    return Region(products, nodes, list(dict.fromkeys(operands)), outputs_of(nodes), stop)


def _paired(
    region: Region,
    order: Mapping[fx.Node, int],
    owner: Mapping[fx.Node, Region],
    others: set[fx.Node],
) -> Region:
    """With a second product of the same A that the region alone reads, where there is one."""
    first = region.products[0]
    if len(region.frame) != 2:
        return region
    inside = set(region.nodes)
    for operand in region.operands:
        chain = _chain(operand)
        second = product_of(chain[-1])
        if not isinstance(second, Product) or second.node in owner or second.node in others:
            continue
        joined = inside | set(chain)
        read_here = all(user in joined for each in chain for user in each.users)
        if read_here and _go_together(first, second):
            nodes = sorted(joined, key=order.__getitem__)
            products = sorted((first, second), key=lambda each: order[each.node])
            return _closed(products, nodes, region.stop)
    return region


def _absorbed(
    region: Region, order: Mapping[fx.Node, int], owner: Mapping[fx.Node, Region]
) -> Region:
    """With the operators that make its operands, where the kernel then reads no more bytes.

    A gradient is multiplied with a function of what forward saved: the kernel computes that, too.
    """
    first = region.products[0].node
    inside, waiting = set(region.nodes), list(region.operands)
    while waiting:
        node = waiting.pop()
        own = node not in inside and all(user in inside for user in node.users)
        if (
            own
            and not is_constant(node)
            and not _refusal(node, first, inside, set(), owner, region.frame)
        ):
            inside.add(node)
            waiting = [each for one in inside for each in one.all_input_nodes]
    if len(inside) == len(region.nodes):
        return region
    nodes = sorted(inside, key=order.__getitem__)
    wider = _closed(region.products, nodes, region.stop)
    return wider if _read_bytes(wider) <= _read_bytes(region) else region


def _read_bytes(region: Region) -> int:
    return sum(_bytes(each) for each in region.operands)


def _chain(node: fx.Node) -> list[fx.Node]:
    """A value and what it is a view of, down to where it is computed."""
    found = [node]
    while is_same(found[-1]):
        found.append(found[-1].args[0])  # type: ignore[arg-type]
    return found


def _go_together(first: Product, second: Product) -> bool:
    """Whether one kernel makes both: the same A, and B of one form."""
    if second.offsets is not None or first.node.target is not second.node.target:
        return False
    lies = [(each.shape, each.stride(), each.dtype) for each in _values(first.b, second.b)]
    return _is_same_value(first.a, second.a) and lies[0] == lies[1]


def _values(*nodes: fx.Node) -> list[torch.Tensor]:
    return [node.meta["val"] for node in nodes]


def _is_same_value(one: Any, other: Any) -> bool:
    """Whether two nodes are the same, or the same view of the same."""
    if one is other or not isinstance(one, fx.Node) or not isinstance(other, fx.Node):
        return one is other
    if one.target is not other.target or one.target not in VIEWS:
        return False
    return one.args[1:] == other.args[1:] and _is_same_value(one.args[0], other.args[0])


def in_circle(region: Region, owner: Mapping[fx.Node, Region]) -> bool:
    """Whether something outside needs the region, and the region needs that.

    Other regions are one node each: all of one is computed before anything that it gives.
    """
    inside = set(region.nodes)
    seen: set[fx.Node] = set()
    waiting = [user for node in inside for user in node.users if user not in inside]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        together = owner[node].nodes if node in owner else [node]
        seen.update(together)
        for user in (user for each in together for user in each.users):
            if user in inside:
                return True
            waiting.append(user)
    return False
