"""Which calls of `matmul` may go to a kernel at once, as its last one did."""

import pytest
import torch

from tilewright import matmul
from tilewright.compiler.calls.kernels import found_kernels, lookup
from tilewright.compiler.calls.kernels.kernel_cache import cached_bundle

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")


class Named(torch.Tensor):
    """A tensor of a type that torch doesn't make itself."""


class Knowing:
    """A kernel that takes any tensors for its last ones; it computes nothing for them."""

    def __init__(self, kernel, heard):
        self.kernel, self.heard = kernel, heard

    def __call__(self, *inputs, out=None):
        return self.kernel(*inputs, out=out)

    def relaunched(self, inputs, out):
        self.heard.append((*inputs, out))
        return True


@pytest.fixture
def tensors():
    torch.manual_seed(5)
    return torch.randn(24, 40).bfloat16(), torch.randn(16, 40).bfloat16()


@pytest.fixture
def asked(tensors, monkeypatch):
    """The tensors that a kernel knew, of those that were multiplied."""
    matmul(*tensors)
    heard = []
    known = {
        key: tuple(each._replace(kernel=Knowing(each.kernel, heard)) for each in seen)
        for key, seen in lookup._seen.items()
    }
    monkeypatch.setattr(lookup, "_seen", known)
    return heard


def test_a_call_like_the_last_one_is_the_kernels_alone(tensors, asked):
    out = torch.full((24, 16), 7.0, dtype=torch.bfloat16)
    assert matmul(*tensors, out=out) is out
    assert [list(map(id, each)) for each in asked] == [[*map(id, tensors), id(out)]]
    assert (out == 7).all(), "nothing else has computed it"


@pytest.mark.parametrize(
    "given",
    [
        {"out_dtype": "f32"},
        {"epilogue": torch.relu},
        {"of": lambda a, b: (a, b.requires_grad_())},
        {"of": lambda a, b: (a.as_subclass(Named), b)},
        {"of": lambda a, b: (a[:8], b)},
    ],
    ids=["type", "epilogue", "gradient", "subclass", "rows"],
)
def test_another_call_is_not(tensors, asked, given):
    a, b = given.pop("of", lambda *them: them)(*tensors)
    dtype = torch.float32 if "out_dtype" in given else torch.bfloat16
    out = torch.full((len(a), 16), torch.nan, dtype=dtype)
    matmul(a, b, out=out, **given)
    assert not asked
    exact = a.detach().double() @ b.detach().double().T
    exact = exact.relu() if "epilogue" in given else exact
    assert (out.double() - exact).norm() < 0.01 * exact.norm()


def test_a_call_with_a_wrong_option_is_refused_all_the_same(tensors, asked):
    out = torch.empty(24, 16, dtype=torch.bfloat16)
    words = {"math": "an epilogue must have a function"}
    for wrong in (
        {"precision": "double"},
        {"precision": "tf32"},
        {"math": "fast"},
        {"operands": [out]},
        {"m": "any"},
    ):
        (name,) = wrong
        with pytest.raises(Exception, match=f"matmul: {words.get(name, name)}"):
            matmul(*tensors, out=out, **wrong)
    assert not asked


@pytest.fixture
def cubes(tensors):
    """Twice in a row: what torch makes of the sum of a product's cubes, and float64."""
    a, b = (each.clone().requires_grad_() for each in tensors)
    a64, b64 = (each.detach().double().requires_grad_() for each in (a, b))

    def made(differentiate):
        ours = [
            differentiate(lambda *them: matmul(*them, out_dtype="f32").pow(3).sum(), a, b)
            for _ in range(2)
        ]
        return ours, differentiate(lambda x, y: (x @ y.T).pow(3).sum(), a64, b64)

    return made


def backward(function, a, b):
    return torch.autograd.grad(function(a, b), (a, b))


def functional(function, a, b):
    return torch.func.grad(function, argnums=(0, 1))(a.detach(), b.detach())


def forward(function, a, b):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(a.detach(), torch.ones_like(a))
        return (torch.autograd.forward_ad.unpack_dual(function(dual, b.detach())).tangent,)


@pytest.mark.parametrize("ways", [(backward,), (backward, functional), (backward, forward)])
def test_gradients_of_calls_in_a_row_are_as_torch_takes_them(cubes, ways):
    for way in ways:
        ours, exact = cubes(way)
        for each in ours:
            for got, wanted in zip(each, exact, strict=True):
                assert (got.double() - wanted).norm() < 0.01 * wanted.norm(), way.__name__


def test_a_call_in_a_row_with_gradients_asks_the_kernel_at_once(tensors, monkeypatch):
    a, b = tensors[0], tensors[1].requires_grad_()
    first = matmul(a, b)
    monkeypatch.setattr("tilewright.compiler.calls.dense.matmul_operator.product", None)
    second = matmul(a, b)
    assert second.equal(first)
    assert second.grad_fn is not None
    with torch.no_grad():
        assert matmul(a, b).grad_fn is None


def test_products_of_many_sizes_keep_a_bounded_number(monkeypatch):
    """Each size has a kernel and an entry of its own, and each product is right after them all."""
    monkeypatch.setattr(lookup, "_kernels", found_kernels.FoundKernels())
    monkeypatch.setattr(lookup, "_seen", {})
    monkeypatch.setattr(lookup, "SEEN_KEPT", 2)
    monkeypatch.setattr(found_kernels, "KERNELS_KEPT", 2)
    b = torch.eye(16, dtype=torch.bfloat16)
    for rows in (1, 2, 3, 1):
        a = torch.arange(16 * rows, dtype=torch.bfloat16).reshape(rows, 16)
        assert matmul(a, b, target="sm_80").equal(a)
        assert len(lookup._seen) <= 2
        assert len(lookup._kernels) <= 2
    assert cached_bundle.cache_info().maxsize


def test_tensors_of_the_same_sizes_are_known_beside_one_another(monkeypatch):
    """As a square weight in forward, and its transpose in backward."""
    torch.manual_seed(6)
    a, b = torch.randn(24, 40).bfloat16(), torch.randn(40, 40).bfloat16()
    forms = [b, b.mT, torch.nn.Parameter(b), a.new_empty(40, 48)[:, :40].copy_(b)]
    wanted = [matmul(a, each) for each in forms]
    monkeypatch.delattr(lookup, "kernel_for")  # by which calls are remembered
    for each, result in [*zip(forms, wanted, strict=True)] * 2:
        assert matmul(a, each).equal(result)
