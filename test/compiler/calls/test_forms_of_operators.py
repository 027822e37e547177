"""Our operators keep torch's rules for any form of operands: opcheck, and gradients in float64.

opcheck runs an operator four ways: by its schema, with fake tensors, with recorded gradients, and
as torch.compile takes it apart with sizes that are symbols, and then its gradients. The last costs
five times the others: where no gradients are recorded, it is done to `SPECIAL` forms.
`test/inductor/test_operators.py` has operators of regions and kernels, and says that none is left
out.
"""

import pytest
import torch
from torch import library

import tilewright
from tilewright.compiler.calls.layers.linear_operator import Layer
from tilewright.compiler.calls.weights.weight_operator import dequantized
from tilewright.nn import quantize_weights

tilewright.torch.register_operators()
OURS = torch.ops.tilewright
BF16, F16, F32, F64 = torch.bfloat16, torch.float16, torch.float32, torch.float64


SPECIAL = ("rows", "gaps", "one row", "no rows", "odd sizes", "stacks", "no stack", "no bias",
           "four dims", "swapped dims", "no batch", "one row and one value for all")  # fmt: skip
"""Matrices and stacks, dims that lie otherwise, and sizes of 0 and 1, which torch takes for numbers
and not for symbols."""
UNTRACED = ("test_schema", "test_autograd_registration", "test_faketensor")


def opcheck(operator, given, form):
    ways = {} if form in SPECIAL else {"test_utils": UNTRACED}
    library.opcheck(operator, given, **ways)


def draw(*sizes, dtype=BF16):
    torch.manual_seed(sum(sizes))
    return torch.randn(*sizes).to(dtype)


def halves(*sizes):
    """The first half of rows that are twice as long."""
    return draw(*sizes[:-1], 2 * sizes[-1])[..., : sizes[-1]]


def columns(*sizes):
    """By columns in memory."""
    return draw(*sizes[:-2], sizes[-1], sizes[-2]).mT


MATRICES = {
    "rows": (draw(16, 32), draw(24, 32)),
    "columns": (columns(16, 32), columns(24, 32)),
    "gaps": (halves(16, 32), halves(24, 32)),
    "gaps of no 16 bytes": (draw(16, 35)[:, 1:33], draw(24, 32)),
    "every second row": (draw(32, 32)[::2], draw(48, 32)[::2]),
    "one row for all": (draw(1, 32).expand(16, 32), draw(24, 32)),
    "odd sizes": (draw(7, 5), draw(3, 5)),
    "one row": (draw(1, 32), draw(24, 32)),
    "no rows": (draw(0, 32), draw(24, 32)),
    "no columns": (draw(16, 32), draw(0, 32)),
    "no depth": (draw(16, 0), draw(24, 0)),
    "f16": (draw(16, 32, dtype=F16), draw(24, 32, dtype=F16)),
    "f32": (draw(16, 32, dtype=F32), draw(24, 32, dtype=F32)),
    "f64": (draw(6, 4, dtype=F64), draw(5, 4, dtype=F64)),
    "s8": (torch.ones(16, 32).to(torch.int8), torch.ones(24, 32).to(torch.int8)),
}
STACKS = {
    "stacks": (draw(3, 16, 32), draw(3, 24, 32)),
    "stacks of columns": (columns(3, 16, 32), columns(3, 24, 32)),
    "one matrix and a stack": (draw(16, 32), draw(3, 24, 32)),
    "no stack": (draw(0, 16, 32), draw(0, 24, 32)),
}
LEADING = {
    "a stack of rows": (draw(3, 16, 32), draw(24, 32)),
    "stacks that broadcast": (draw(2, 1, 16, 32), draw(3, 24, 32)),
}
NO_HOW = "", "", "", ""
OF_ANY = {"m": ("dynamic", MATRICES["rows"]), "batch": ("stack", STACKS["stacks"]),
          "both": ("both", STACKS["stacks"]), "k": ("dynamic", MATRICES["rows"])}  # fmt: skip


@pytest.mark.sweep(2)
@pytest.mark.parametrize("form", MATRICES | STACKS)
def test_product(form):
    opcheck(OURS.product.default, (*(MATRICES | STACKS)[form], *NO_HOW), form)


RECORDED = ("columns", "gaps", "no depth", "f64", *STACKS, *LEADING)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("form", RECORDED)
def test_matmul(form):
    a, b = (MATRICES | STACKS | LEADING)[form]
    recorded = [each.detach().requires_grad_(each.is_floating_point()) for each in (a, b)]
    library.opcheck(OURS.matmul.default, (*recorded, *NO_HOW))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("size", OF_ANY)
def test_product_of_any_size(size):
    how, (a, b) = OF_ANY[size]
    library.opcheck(OURS.product.default, (a, b, *NO_HOW, how))


LAYERS = {
    "matrix": (draw(16, 32), draw(24, 32), draw(24)),
    "no bias": (draw(16, 32), draw(24, 32), None),
    "four dims": (draw(2, 2, 4, 32), draw(24, 32), draw(24)),
    "columns": (columns(16, 32), columns(24, 32), draw(24)),
    "gaps": (halves(16, 32), halves(24, 32), draw(48)[::2]),
    "swapped dims": (draw(8, 2, 32).transpose(0, 1), draw(24, 32), None),
    "one row and one value for all": (draw(1, 32).expand(16, 32), draw(24, 32), draw(1).expand(24)),
    "odd sizes": (draw(7, 5), draw(3, 5), draw(3)),
    "no batch": (draw(2, 0, 32), draw(24, 32), draw(24)),
    "no columns": (draw(16, 32), draw(0, 32), draw(0)),
    "no depth": (draw(16, 0), draw(24, 0), draw(24)),
    "f16": (draw(16, 32, dtype=F16), draw(24, 32, dtype=F16), draw(24, dtype=F16)),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("form", LAYERS)
def test_linear_and_its_gradients(form):
    x, weight, bias = LAYERS[form]
    gradient = draw(*x.shape[:-1], weight.shape[0], dtype=x.dtype)
    opcheck(OURS.linear.default, (x, weight, bias), form)
    opcheck(OURS.linear_input_gradient.default, (gradient, weight), form)
    opcheck(OURS.linear_weight_gradient.default, (gradient, x), form)


def test_gradients_of_linear_of_one_value_for_all():
    """As the gradient of a sum is."""
    ones = torch.ones(1, dtype=BF16).expand(16, 24)
    library.opcheck(OURS.linear_input_gradient.default, (ones, draw(24, 32)))
    library.opcheck(OURS.linear_weight_gradient.default, (ones, draw(16, 32)))


WEIGHTS = {"int8": "s8", "int4": "s4", "uint4": "u4"}
ROWS = {"rows": (draw(16, 64), ""), "no rows": (draw(0, 64), ""), "gaps": (halves(16, 64), ""),
        "any rows": (draw(2, 8, 64), "dynamic")}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("kind", "form"), [("int8", "rows"), ("uint4", "rows"), *(("int4", form) for form in ROWS)]
)
def test_weight_only(kind, form):
    x, m = ROWS[form]
    b, *beside = _quantized(kind)
    bias = None if form == "gaps" else draw(24).requires_grad_()
    given = x.detach().requires_grad_(), b, *beside, bias, WEIGHTS[kind], "", m
    library.opcheck(OURS.weight_only.default, given)


def _quantized(kind):
    weights = quantize_weights(draw(24, 64), kind, 32)
    return [None if each is None else each.detach() for each in weights]


def ends(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


OF_ROWS = {
    "rows": (draw(16, 32), columns(2, 32, 24), ends(9, 16), None),
    "stack by rows": (draw(16, 32), draw(2, 32, 24), ends(9, 16), None),
    "an empty group": (draw(16, 32), columns(3, 32, 24), ends(9, 9, 16), None),
    "rows of no group": (draw(16, 32), columns(2, 32, 24), ends(3, 9), None),
    "gathered": (draw(8, 32), columns(2, 32, 24), ends(5, 12), ends(*range(8), *range(4))),
    "gaps": (halves(16, 32), halves(2, 24, 32).mT, ends(9, 16), None),
    "no rows": (draw(0, 32), columns(2, 32, 24), ends(0, 0), None),
    "no columns": (draw(16, 32), columns(2, 32, 0), ends(9, 16), None),
    "no depth": (draw(16, 0), columns(2, 0, 24), ends(9, 16), None),
    "groups of depth": (columns(16, 32), draw(32, 24), ends(8, 32), None),
    "groups of depth by rows": (draw(16, 32), columns(32, 24), ends(16, 32), None),
    "f16": (draw(16, 32, dtype=F16), draw(2, 32, 24, dtype=F16), ends(9, 16), None),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("form", OF_ROWS)
def test_grouped(form):
    a, b, *others = OF_ROWS[form]
    recorded = [each.detach().requires_grad_() for each in (a, b)]
    library.opcheck(OURS.grouped.default, (*recorded, *others, "", True, *[""] * 5))


def test_gradcheck_of_a_layer():
    """f64, by the threads' fma, which takes no bias: gradcheck along random directions."""
    x, weight = (draw(*sizes, dtype=F64).requires_grad_() for sizes in ((2, 2, 4), (3, 4)))
    assert torch.autograd.gradcheck(Layer.apply, (x, weight, None), fast_mode=True)
    assert torch.autograd.gradgradcheck(Layer.apply, (x, weight, None), fast_mode=True)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_gradients_of_a_product_with_narrow_weights_are_those_of_the_weights_that_they_stand_for(
    kind,
):
    """Weights are of one type, so the reference multiplies what they stand for in float64."""
    x, bias = draw(2, 8, 64).requires_grad_(), draw(24).requires_grad_()
    b, *beside = _quantized(kind)
    made = OURS.weight_only(x, b, *beside, bias, WEIGHTS[kind], "", "")
    along = draw(2, 8, 24)
    found = torch.autograd.grad(made, (x, bias), along)
    wide, wide_bias = (each.detach().double().requires_grad_() for each in (x, bias))
    weights = dequantized(b, *beside, b_dtype=WEIGHTS[kind]).double()
    wanted = torch.autograd.grad(wide @ weights.T + wide_bias, (wide, wide_bias), along.double())
    for each, exact in zip(found, wanted, strict=True):
        assert (each.double() - exact).norm() < 2**-7 * exact.norm()
