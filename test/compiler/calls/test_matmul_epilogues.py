"""`tilewright.matmul(..., epilogue=f)`: Python functions of the sums, in the product's kernel."""

import functools

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tilewright import CompileError, matmul
from tilewright.compiler.calls.dense import fused

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(23)
M, N, K = 40, 56, 72


def random(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=GENERATOR).to(dtype)


A, B = random(M, K, dtype=torch.bfloat16), random(N, K, dtype=torch.bfloat16)
TILE, ROW, COLUMN, ONE = random(M, N), random(M, 1), random(N), random()
NARROW = random(M, N, dtype=torch.bfloat16)
STACK_A, STACK_B = (random(3, rows, K, dtype=torch.bfloat16) for rows in (M, N))
STACKS_A, STACKS_B = (random(2, 3, rows, K, dtype=torch.bfloat16) for rows in (M, N))


def assert_made(c, a, b, function, operands=()):
    """C is what the function makes of the exact sums, rounded once, give or take f32's errors."""
    sums = a.double() @ b.double().mT
    wide = [each.double() if each.is_floating_point() else each for each in operands]
    expected = function(sums, *wide).double()
    reach = 2**-8 if c.dtype == torch.bfloat16 else 2**-11 if c.dtype == torch.float16 else 2**-18
    assert c.shape == expected.shape
    error = (c.double() - expected).abs()
    assert (error <= reach * expected.abs() + 2**-14).all(), error.max()


def mixed(acc, narrow, factor):
    """Operators of several types, which compute in the widest."""
    quotient = torch.addcdiv(acc, narrow, factor, value=2)
    return torch.addcmul(quotient, narrow, narrow, value=0.3)


def every_order(acc, transposed, column_major, row, twice):
    """Operands that lie in any order, get a dim, and are read twice."""
    return acc * row[:, None] + transposed.T - column_major * twice + twice


def steps(acc, x, narrow):
    """Comparisons, powers, and bf16 that is computed in f32."""
    chosen = torch.where(acc > x, acc, 0.25 * x)
    return F.elu(chosen) + (acc * 0.1) ** 2 + (acc * 0.1) ** 3 + torch.sigmoid(chosen) * narrow


FUNCTIONS = {
    "gelu": (lambda acc, bias: F.gelu(acc + bias), (COLUMN,)),
    "a module": (torch.nn.SiLU(), ()),
    "a partial": (functools.partial(torch.clamp, min=-1.5, max=2), ()),
    "every shape": (lambda acc, s, r, n, x: (acc * s + r) * n + x, (ONE, ROW, COLUMN, TILE)),
    "every order": (every_order, (TILE.T.contiguous(), TILE.mT.contiguous().mT, ROW[:, 0], ROW)),
    "steps": (steps, (TILE, NARROW)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_sums_is_computed_in_the_kernel(name):
    function, operands = FUNCTIONS[name]
    assert_made(matmul(A, B, epilogue=function, operands=operands), A, B, function, operands)


@pytest.mark.parametrize("how", [{}, {"m": "dynamic"}])
def test_one_result_in_a_tuple_is_returned_in_one(how):
    (c,) = matmul(A, B, epilogue=lambda acc: (acc + 1,), **how)
    assert_made(c, A, B, lambda acc: acc + 1)
    (none,) = matmul(A[:0], B, epilogue=lambda acc: (acc + 1,), **how)
    assert none.shape == (0, N)


def test_operators_of_several_types_compute_in_the_widest():
    operands = NARROW, (COLUMN.abs() + 1).bfloat16()
    c = matmul(A, B, epilogue=mixed, operands=operands, out_dtype="f32")
    assert_made(c, A, B, mixed, operands)


def test_the_result_is_rounded_to_the_type_asked_for():
    half = matmul(A, B, out_dtype="f16", epilogue=lambda acc: acc * 0.125)
    assert half.dtype == torch.float16
    assert_made(half, A, B, lambda acc: acc * 0.125)
    out = torch.full((M, N), torch.nan)
    given = matmul(A, B, out_dtype="f32", out=out, epilogue=lambda acc: acc.to(torch.bfloat16))
    assert given is out
    assert torch.equal(out, (A.float() @ B.float().T).to(torch.bfloat16).float())


def test_integers_are_scaled_to_floats():
    a, b = (torch.randint(-9, 9, (rows, K), generator=GENERATOR).to(torch.int8) for rows in (M, N))
    c = matmul(a, b, out_dtype="bf16", epilogue=lambda acc, s: acc * s, operands=[ROW])
    assert_made(c, a, b, lambda acc, s: acc * s, [ROW])


@pytest.mark.parametrize(
    ("b", "operands"),
    [
        (B, [random(3, M, N), random(3, M, 1), COLUMN]),
        (STACK_B, [random(3, M, N), random(3, 1, 1), random(M, N)]),
        (STACK_B, [random(M, 1), random(3, 1, N), ONE]),
    ],
    ids=["rows of one matrix", "a value a matrix", "a shared column"],
)
def test_operands_follow_the_dims_before_the_matrices(b, operands):
    def function(acc, x, y, z):
        return (acc + x) * y - z

    c = matmul(STACK_A, b, epilogue=function, operands=operands)
    assert_made(c, STACK_A, b, function, operands)


@pytest.mark.sweep(4)
@pytest.mark.pairwise
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("b", [B, STACKS_B], ids=["rows of one matrix", "stacks"])
@pytest.mark.parametrize("shape", [(M, 1), (2, 1, 1, 1), (3, 1, N), (2, 1, M, N), (3, M, 1)])
def test_operands_are_expanded_along_some_of_the_dims_before_the_matrices(shape, b, target):
    operands = [random(*shape)]
    c = matmul(STACKS_A, b, target=target, epilogue=torch.add, operands=operands)
    assert_made(c, STACKS_A, b, torch.add, operands)
    numpy = [each.numpy() for each in operands]
    assert c.equal(matmul(STACKS_A, b, target=target, epilogue=torch.add, operands=numpy))


def test_an_operand_whose_axes_are_turned_is_expanded():
    def function(acc, x):
        return acc + x.T.unsqueeze(1)

    operands = [random(N, 3)]
    c = matmul(STACKS_A, B, epilogue=function, operands=operands)
    assert_made(c, STACKS_A, B, function, operands)


def masked(acc, mask, small):
    return torch.where(mask & (acc > -1) | (acc < -9), acc, small.to(acc.dtype)).masked_fill(
        ~mask, 2
    )


MASKS = TILE > 0, COLUMN > 0, ROW > 0, TILE.T.contiguous().T > 0, ONE > 0
BYTES = torch.bool, torch.int8, torch.uint8, torch.float8_e4m3fn, torch.float8_e5m2


@pytest.mark.parametrize("dtype", BYTES)
def test_operands_of_bytes_are_the_numbers_that_they_are(dtype):
    small = torch.linspace(-130, 255, M * N).reshape(M, N).to(dtype)
    for mask in MASKS if dtype == torch.bool else MASKS[:1]:
        c = matmul(A, B, epilogue=masked, operands=[mask, small], out_dtype="f32")
        assert_made(c, A, B, masked, [mask, small])


@pytest.mark.parametrize("c", [torch.nan, torch.inf, -torch.inf, 0.0, -2.0])
def test_conditions_are_those_of_torch_for_special_numbers(c):
    """The sums are 0, so that nothing but `c` is in what is asked."""

    def function(acc, x, y):
        x, y = acc + x, acc + y
        known = torch.where(torch.isfinite(x) ^ torch.isinf(y), 1.0, torch.sign(x))
        both = torch.logical_or(torch.isnan(x), y) & ~torch.logical_and(x, y)
        return torch.where(both, known, torch.nan_to_num(x, 3.0, 4.0, -5.0) + torch.sgn(x))

    operands = [
        torch.full((M, N), c),
        torch.tensor([0.0, torch.nan, torch.inf, 1.0]).repeat(N // 4),
    ]
    found = matmul(A * 0, B, epilogue=function, operands=operands, out_dtype="f32")
    assert torch.equal(found, function(torch.zeros(M, N), *operands))


def test_numpy_arrays_are_taken_and_given():
    a, b, bias = (np.asarray(each.float()) for each in (A, B, COLUMN))
    c = matmul(a, b, epilogue=lambda acc, x: acc + x, operands=[bias])
    assert isinstance(c, np.ndarray)
    assert np.allclose(c, a @ b.T + bias, atol=1e-3)


def test_equal_functions_share_a_kernel_and_others_do_not():
    before = len(fused._fused)
    for scale in (0.5, 0.5, 2.0):
        c = matmul(A, B, epilogue=lambda acc: acc * scale)  # noqa: B023
        assert_made(c, A, B, lambda acc: acc * scale)  # noqa: B023
    assert len(fused._fused) == before + 2


class Scale:
    """Something whose method is an epilogue."""

    factor = 1.0

    def __call__(self, acc):
        return acc * self.factor

    def apply(self, acc):
        return acc * self.factor


def test_a_function_is_traced_again_when_what_it_reads_has_changed():
    scale, table = Scale(), {"factor": 1.0}
    for factor in (0.5, 2.0):
        scale.factor = table["factor"] = factor
        for made in (scale.apply, scale, lambda acc: acc * table["factor"]):
            assert_made(matmul(A, B, epilogue=made), A, B, lambda acc: acc * factor)  # noqa: B023


def test_gradients_are_those_of_product_and_function():
    a, bias = A.float().requires_grad_(), COLUMN.clone().requires_grad_()
    c = matmul(a, B.float(), epilogue=lambda acc, x: torch.tanh(acc * 0.1 + x), operands=[bias])
    c.sum().backward()
    slope = 1 - torch.tanh(A.double() @ B.double().T * 0.1 + COLUMN) ** 2
    assert torch.allclose(bias.grad.double(), slope.sum(0), atol=1e-3)
    assert torch.allclose(a.grad.double(), 0.1 * slope @ B.double(), atol=1e-2)


def test_a_product_of_nothing_goes_through_the_function():
    c = matmul(A[:, :0], B[:, :0], epilogue=lambda acc, x: acc + x, operands=[COLUMN])
    assert torch.equal(c, COLUMN.to(torch.bfloat16).expand(M, N))


def sorted_rows(acc):
    twice = acc * 2
    return twice.sort()[0]


REFUSED = {
    "an unknown operator": (lambda acc: acc.cumsum(0), (), "elementwise operators .* aten.cumsum"),
    "a part of a result": (lambda acc: torch.frexp(acc).mantissa, (), "aten.frexp"),
    "a branch": (lambda acc: acc if acc[0, 0] > 0 else -acc, (), "must not branch"),
    "a change in place": (lambda acc: acc.mul_(2), (), "no tensor in place, got aten.mul_"),
    "a tensor from around": (lambda acc: acc + COLUMN, (), "given by operands="),
    "an element of it": (lambda acc: acc * ONE.item(), (), "given by operands="),
    "all of them": (lambda acc: acc * COLUMN.tolist()[0], (), "given by operands="),
    "a branch on it": (lambda acc: acc if ONE > 0 else -acc, (), "given by operands="),
    "a number of 8 bits": (
        lambda acc: acc + torch.ones_like(acc, dtype=torch.float8_e5m2).float(),
        (),
        "numbers must not be of f8E5M2",
    ),
    "a reduction": (lambda acc: acc.sum(0), (), r"shape of acc, \[40, 56\], got \[56\]"),
    "the transpose": (lambda acc: acc.T, (), "shape of acc"),
    "an operand nobody reads": (lambda acc, x: acc, (COLUMN,), r"must read operands\[0\]"),
    "a wrong shape": (lambda acc, x: acc + x, (COLUMN[:3],), "broadcast a dimension of length 3"),
    "a number": (lambda acc, x: acc + x, (0.5,), "close over a number"),
    "no tensor": (lambda acc: 3, (), "return a tensor or several, got int"),
    "a second result of another type": (
        lambda acc: (acc, acc > 0),
        (),
        "further results must be of bf16, .*, got bool",
    ),
    "a random choice": (
        lambda acc: F.dropout(acc, 0.5),
        (),
        r"must make no random choice, got aten\.(bernoulli_|native_dropout); draw outside",
    ),
    "no function": (3, (), "must be a function of acc"),
    "integers": (lambda acc, x: acc + x, (COLUMN.long(),), r"operands\[0\] must be .* of i64"),
    "sums of bytes": (
        lambda acc, x: acc + (x + 1),
        (COLUMN.to(torch.int8),),
        "types must be float",
    ),
    "f64": (lambda acc: (acc.double() * 2).float(), (), "compute with f32, .* got aten.mul of f64"),
    "other dims": (lambda acc: acc.reshape(N, M).reshape(M, N), (), "must keep the dims"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_epilogue_is_refused(name):
    function, operands, message = REFUSED[name]
    with pytest.raises(CompileError, match=message):
        matmul(A, B, epilogue=function, operands=operands)


@pytest.mark.parametrize("number", [2**40, torch.nan])
def test_numbers_that_are_no_integers_are_refused(number):
    a, b = A.to(torch.int8), B.to(torch.int8)
    with pytest.raises(CompileError, match="must take an integer of 32 bits, got") as caught:
        matmul(a, b, epilogue=lambda acc: acc + torch.full_like(acc, number))
    assert caught.value.location.startswith(__file__)


def test_a_refusal_names_the_line_of_the_function():
    with pytest.raises(CompileError) as caught:
        matmul(A, B, epilogue=sorted_rows)
    line = sorted_rows.__code__.co_firstlineno + 2
    assert caught.value.location == f"{__file__}:{line}"


def test_operands_without_an_epilogue_are_refused():
    with pytest.raises(CompileError, match="pass epilogue="):
        matmul(A, B, operands=[COLUMN])
