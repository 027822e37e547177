"""The matmuls of a graph after Inductor's passes: operands, types and what belongs to them.

    mm(a, b)                   addmm(c, a, b)            α·a·b + β·c
    bmm(a, b)                  baddbmm(c, a, b)          the same of stacks
    _scaled_mm(a, b, s, t, …)  a·b·s·t + bias, one factor a tensor, or one a row and a column;
                               (a·s)·(b·t) + bias, one factor a block of 16 or 32 along K
    _grouped_mm(a, b, offs)    products of groups of rows, or of K

aten's b is [k, n]. nn.Linear arrives as mm or addmm of the permuted weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import fx

from ..calls.dense.matmul_operator import product_operator
from ..calls.kernels.lookup import How
from ..calls.operands.scaled_sides import FORMATS
from ..calls.operands.torch_precision import asks_for_all_digits
from .frames import like

aten: Any = torch.ops.aten
Value = Callable[[fx.Node], Any]


class Product(NamedTuple):
    """One product; `scales` are factors of the sums, `addend` is what is added to them.

    offsets: where groups of rows, or of K, end, or None. part: where the operator's result is cut
    in two, the columns that this one is, from one to another; `node` is then the cut, `origin` the
    operator.
    b_is_nk: whether the operator takes b as [.., n, k]. blocks: the scales of blocks of A and of B,
    in atoms, with the names of both's formats. math: how exact the functions after it are, as its
    call asks. precision: how operands of f32 are multiplied, as its call asks; "" by torch's
    setting.
    """

    node: fx.Node
    a: fx.Node
    b: fx.Node
    addend: fx.Node | None = None
    alpha: float = 1
    beta: float = 1
    scales: tuple[fx.Node, ...] = ()
    offsets: fx.Node | None = None
    part: tuple[int, int] | None = None
    origin: fx.Node | None = None
    b_is_nk: bool = False
    blocks: tuple[fx.Node, ...] = ()
    formats: tuple[str, ...] = ()
    math: str = ""
    precision: str = ""

    @property
    def multiplies(self) -> fx.Node:
        """The operator that multiplies."""
        return self.origin or self.node

    @property
    def frame(self) -> tuple[int, ...]:
        """The sizes of the product, as a kernel has them."""
        whole = sizes_of(self.multiplies)
        return whole if self.part is None else (*whole[:-1], self.part[1] - self.part[0])

    def b_like(self) -> torch.Tensor:
        """How its B lies, [.., k, n], without memory."""
        found = like(self.b.meta["val"])
        found = found.mT if self.b_is_nk else found
        return found if self.part is None else found[..., slice(*self.part)]

    @property
    def beside(self) -> tuple[fx.Node, ...]:
        """What is read beside a, b and offsets, as operands of the epilogue."""
        return (*self.scales, *([] if self.addend is None else [self.addend]))

    def is_static(self) -> bool:
        """Whether all its sizes are numbers, and no symbols."""
        return all(map(is_static, (self.node, self.a, self.b, *self.blocks, *self.beside)))

    def of_sums(self, sums: Any, value: Value) -> Any:
        """The product's value in the type of its sums: eager torch rounds it once, after that."""
        for scale in self.scales:
            sums = sums * value(scale)
        if self.alpha != 1:
            sums = sums * self.alpha
        if self.addend is not None:
            added = value(self.addend).to(sums.dtype)
            sums = sums + (added if self.beta == 1 else added * self.beta)
        return sums


class Refusal(NamedTuple):
    """Why an operator that multiplies is left to Inductor."""

    node: fx.Node
    reason: str


def product_of(node: fx.Node) -> Product | Refusal | None:
    """The product that a node is; None where it multiplies no matrices."""
    reader = _READERS.get(node.target) if node.op == "call_function" else None
    if reader is None:
        return None
    found = reader(node)
    if isinstance(found, str):
        return Refusal(node, found)
    reason = _sizes_reason(found)
    return Refusal(node, reason) if reason else found


def dtype_of(node: fx.Node) -> torch.dtype:
    """The type of a node's elements."""
    return node.meta["val"].dtype


def is_truth(node: fx.Node) -> bool:
    """Whether a value is one of bools."""
    return dtype_of(node) is torch.bool


def sizes_of(node: fx.Node) -> tuple[Any, ...]:
    """The sizes of a node's value, which may be symbols."""
    return tuple(node.meta["val"].shape)


def is_static(node: fx.Node) -> bool:
    """Whether sizes and strides of a node's value are numbers."""
    value = node.meta["val"]
    return all(type(each) is int for each in (*value.shape, *value.stride()))


def _plain(node: fx.Node) -> Product | str:
    if node.kwargs:
        return f"{sorted(node.kwargs)[0]} is not read"
    a, b = node.args[:2]
    return Product(node, a, b) if len(node.args) == 2 else "out_dtype is not read"  # type: ignore[arg-type]


def _with_addend(node: fx.Node) -> Product | str:
    unread = set(node.kwargs) - {"alpha", "beta"}
    if unread or len(node.args) != 3:
        return f"{sorted(unread)[0] if unread else 'out_dtype'} is not read"
    c, a, b = node.args
    alpha, beta = node.kwargs.get("alpha", 1), node.kwargs.get("beta", 1)
    if not all(isinstance(each, int | float) for each in (alpha, beta)):
        return "alpha and beta are no numbers"
    if not isinstance(c, fx.Node) or beta == 0:
        return "nothing is added"
    return Product(node, a, b, c, alpha, beta)  # type: ignore[arg-type]


SCALED_NAMES = ("a", "b", "scale_a", "scale_b", "bias", "scale_result", "out_dtype",
                "use_fast_accum")  # fmt: skip
SCALED_V2_NAMES = ("a", "b", "scale_a", "recipe_a", "swizzle_a", "scale_b", "recipe_b", "swizzle_b",
                   "bias", "out_dtype", "contraction_dim", "use_fast_accum")  # fmt: skip
SCALED_V2 = (aten._scaled_mm_v2.default,) if hasattr(aten, "_scaled_mm_v2") else ()
FACTORS, BLOCK_OF = ((0,), (1,)), {2: 16, 3: 32}
"""Recipes of torch.nn.functional.ScalingType: one f32 for all or for each row, and how many
elements of K share a scale."""
TYPES_OF_BLOCKS = {torch.float8_e8m0fnu: 32, torch.float8_e4m3fn: 16}


def _arguments(node: fx.Node) -> dict[str, Any]:
    names = SCALED_V2_NAMES if node.target in SCALED_V2 else SCALED_NAMES
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def _scaled(node: fx.Node) -> Product | str:
    given = _arguments(node)
    if given.get("scale_result") is not None:
        return "scale_result is not read"
    types = [dtype_of(given[name]) for name in ("scale_a", "scale_b")]
    if all(each in TYPES_OF_BLOCKS for each in types):
        sides = [
            ((given[f"scale_{e}"],), TYPES_OF_BLOCKS[t]) for e, t in zip("ab", types, strict=True)
        ]
        return _with_blocks(node, given, sides)
    return _with_factors(node, given, (given["scale_a"], given["scale_b"]))


def _with_factors(node: fx.Node, given: dict[str, Any], scales: Any) -> Product | str:
    """A product with one factor for each operand, or for each row and column."""
    a, b = given["a"], given["b"]
    (m, _), (_, n) = sizes_of(a), sizes_of(b)
    for name, scale, whole in zip(("scale_a", "scale_b"), scales, ((m, 1), (1, n)), strict=True):
        if not is_static(scale):
            return f"{name} has a size that is a symbol"
        sizes, dtype = sizes_of(scale), dtype_of(scale)
        if dtype != torch.float32 or not (set(sizes) <= {1} or sizes == whole):
            return f"{name} is {dtype} {list(sizes)}, neither one f32 nor one a row or column"
    return Product(node, a, b, given.get("bias"), scales=tuple(scales))


def _scaled_v2(node: fx.Node) -> Product | str:
    given = _arguments(node)
    if given.get("contraction_dim"):
        return "contraction_dim is not read"
    recipes = [tuple(given[f"recipe_{each}"]) for each in "ab"]
    swizzles = [tuple(given[f"swizzle_{each}"]) for each in "ab"]
    scales = [tuple(given[f"scale_{each}"]) for each in "ab"]
    if all(each in FACTORS for each in recipes) and not any(map(any, swizzles)):
        return _with_factors(node, given, [each[0] for each in scales])
    for name, recipe, swizzle in zip("ab", recipes, swizzles, strict=True):
        if recipe[0] not in BLOCK_OF or recipe[1:] not in ((), (0,)):
            return f"scale_{name} has the recipe {list(recipe)}, which is left to torch"
        if swizzle[:1] != (1,) or any(swizzle[1:]):
            return f"scale_{name} has the swizzle {list(swizzle)}, which is left to torch"
    sides = [(each, BLOCK_OF[recipe[0]]) for each, recipe in zip(scales, recipes, strict=True)]
    return _with_blocks(node, given, sides)


def _with_blocks(node: fx.Node, given: dict[str, Any], sides: list[Any]) -> Product | str:
    """A product with scales of blocks, which may have one factor for each operand as well."""
    formats = []
    for name, (scales, block) in zip("ab", sides, strict=True):
        types = [str(dtype_of(e)).removeprefix("torch.") for e in (given[name], scales[0])]
        if (block, *types) not in FORMATS:
            return f"{name} is {types[0]} with scales of {types[1]} for blocks of {block}"
        formats.append(FORMATS[block, types[0], types[1]])
    factors = [each for scales, _ in sides for each in scales[1:]]
    if any(dtype_of(each) != torch.float32 or set(sizes_of(each)) - {1} for each in factors):
        return "a second scale is no f32 for all"
    blocks = tuple(scales[0] for scales, _ in sides)
    found = Product(node, given["a"], given["b"], given.get("bias"), scales=tuple(factors))
    return found._replace(blocks=blocks, formats=tuple(formats))


def has_short_sums(node: fx.Node) -> bool:
    """Whether a product of 8-bit floats may have sums of fewer bits than f32 has."""
    return node.target is product_operator or bool(_arguments(node).get("use_fast_accum", False))


def _left(reason: str) -> Callable[[fx.Node], str]:
    return lambda node: reason


def _grouped(node: fx.Node) -> Product | str:
    given: dict[str, Any] = dict(
        zip(("a", "b", "offs", "bias", "out_dtype"), node.args, strict=False)
    )
    given |= node.kwargs
    a, b, offsets = (
        given.get("a") or given["self"],
        given.get("b") or given["mat2"],
        given.get("offs"),
    )
    if given.get("bias") is not None or offsets is None:
        return "groups are taken with offsets and without a bias"
    ranks = len(sizes_of(a)), len(sizes_of(b))
    if ranks not in ((2, 3), (2, 2)):
        return "groups are taken of rows, with a stack of matrices, and of K"
    if ranks == (2, 2) and dtype_of(a).itemsize != 2:
        return f"groups of K are taken of types of 16 bits, got {dtype_of(a)}"
    return Product(node, a, b, offsets=offsets)


_READERS: dict[Any, Callable[[fx.Node], Product | str]] = {
    aten.mm.default: _plain,
    aten.bmm.default: _plain,
    aten.addmm.default: _with_addend,
    aten.baddbmm.default: _with_addend,
    aten._scaled_mm.default: _scaled,
}


def _ours(node: fx.Node) -> Product | str:
    """tilewright's own product, as its linear layers and `matmul` leave it in a graph."""
    a, b, *how = node.args
    asked = How(*how)  # type: ignore[arg-type]
    if node.kwargs or any(asked._replace(out_dtype="", math="", precision="")):
        return "a schedule, a chip or a kernel for any M is asked for"
    how = {"math": asked.math, "precision": asked.precision}
    return Product(node, a, b, b_is_nk=True, **how)  # type: ignore[arg-type]


_READERS[product_operator] = _ours
_READERS |= dict.fromkeys(SCALED_V2, _scaled_v2)
_READERS |= {
    getattr(aten, name).default: _left(reason)
    for name, reason in {
        "_scaled_grouped_mm": "groups with scales are left to torch",
        "_scaled_grouped_mm_v2": "groups with scales are left to torch",
        "_int_mm": "sums of integers are left to torch",
    }.items()
    if hasattr(aten, name)
}
GROUPED = (aten._grouped_mm.default,) if hasattr(aten, "_grouped_mm") else ()
_READERS |= dict.fromkeys(GROUPED, _grouped)


def _sizes_reason(product: Product) -> str:
    a, b = product.a, product.b
    if any(size == 0 for each in (a, b) for size in sizes_of(each) if type(size) is int):
        return "a size is 0"
    types = {dtype_of(a), dtype_of(b)}
    asks = product.node.target is not product_operator
    if asks and types == {torch.float32} and asks_for_all_digits(torch):
        return "float32 must be multiplied exactly (torch.set_float32_matmul_precision)"
    if len(types) > 1 and not product.scales and not product.blocks:
        return f"types differ: {', '.join(sorted(str(each) for each in types))}"
    return ""
