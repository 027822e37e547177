"""Products in Inductor's code are called directly, and are what the operator makes of them.

No graph here has more than products: Inductor would have a C++ compiler make the rest.
"""

import re

import pytest
import torch
from torch._inductor.utils import run_and_get_code

from tilewright import matmul
from tilewright.compiler.calls.operators import direct_calls
from tilewright.dialects.tables import changes
from tilewright.runtime.launch.kernel import Kernel

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
DIRECT, OPERATOR = "tilewright_extern_kernels_product_into(", "torch.ops.tilewright.product"


def draw(*shape, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)


def compiled(function, *tensors, dynamic=False):
    """What the compiled function gives, and the code that Inductor wrote for it."""
    torch.compiler.reset()
    made = torch.compile(function, fullgraph=True, dynamic=dynamic)
    result, codes = run_and_get_code(made, *tensors)
    return result, "\n".join(codes), made


def assert_product(c, a, b):
    exact = a.double() @ b.double().mT
    assert c.shape == exact.shape
    assert (c.double() - exact).norm() <= 0.01 * exact.norm()


def test_the_code_calls_and_names_what_it_calls():
    a, b = draw(24, 40), draw(16, 40)
    c, code, _ = compiled(matmul, a, b)
    assert DIRECT in code
    assert OPERATOR not in code
    assert f"from {direct_calls.__name__} import product_into as {DIRECT[:-1]}" in code
    assert c.equal(matmul(a, b))
    assert_product(c, a, b)


FORMS = {
    "transposed": (lambda: (draw(24, 40), draw(40, 16).T), {}),
    "other output": (lambda: (draw(24, 40), draw(16, 40)), {"out_dtype": "f32"}),
    "stacks": (lambda: (draw(3, 24, 40), draw(3, 16, 40)), {}),
    "one matrix for all": (lambda: (draw(3, 24, 40), draw(16, 40)), {}),
    "rows with gaps": (lambda: (draw(24, 64)[:, :40], draw(16, 40)), {}),
    "addresses that are not aligned": (
        lambda: (draw(24 * 40 + 1)[1:].view(24, 40), draw(16, 40)),
        {},
    ),
    "f32": (
        lambda: (draw(24, 40, dtype=torch.float32), draw(16, 40, dtype=torch.float32)),
        {"precision": "ieee"},
    ),
    "no K": (lambda: (draw(24, 0), draw(16, 0)), {}),
    "no rows": (lambda: (draw(0, 40), draw(16, 40)), {}),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("form", FORMS)
def test_the_output_is_the_operators(form):
    make, options = FORMS[form]
    a, b = make()
    c, code, made = compiled(lambda a, b: matmul(a, b, **options), a, b)
    expected = matmul(a, b, **options)
    assert (DIRECT in code) or 0 in expected.shape
    assert c.equal(expected)
    assert (c.dtype, c.stride()) == (expected.dtype, expected.stride())
    other = torch.randn(a.shape, dtype=a.dtype)
    assert made(other, b).equal(matmul(other, b, **options)), "with other addresses"


def test_one_graph_calls_each_kernel_for_its_own_shapes():
    a, b, c = draw(24, 40), draw(32, 40), draw(8, 32)
    result, code, _ = compiled(lambda a, b, c: matmul(matmul(a, b), c), a, b, c)
    assert code.count(DIRECT) == 2
    assert len(set(re.findall(r"'(\[\[.*?\]\])'", code))) == 2
    assert result.equal(matmul(matmul(a, b), c))


def test_any_number_of_rows_is_called_directly():
    b = draw(16, 40)
    made = torch.compile(lambda a: matmul(a, b), fullgraph=True)
    torch.compiler.reset()
    first = draw(24, 40)
    torch._dynamo.mark_dynamic(first, 0)
    result, codes = run_and_get_code(made, first)
    assert DIRECT in codes[0]
    assert '"dynamic"' in codes[0]
    for a, c in [(first, result), *((a, made(a)) for a in (draw(33, 40), draw(200, 40)))]:
        assert_product(c, a, b)


def test_gradients_are_called_directly():
    a, b = draw(24, 40).requires_grad_(), draw(16, 40).requires_grad_()
    torch.compiler.reset()
    made = torch.compile(matmul, fullgraph=True)
    given = draw(24, 16)

    def step():
        return torch.autograd.grad(made(a, b), (a, b), given)

    (of_a, of_b), codes = run_and_get_code(step)
    assert [code.count(DIRECT) for code in codes] == [1, 2]
    assert_product(of_a, given, b.detach().T)
    assert_product(of_b, given.T, a.detach().T)


def test_a_call_asks_the_kernel_of_its_last_one_first(monkeypatch):
    """And finds another where that one does not know the tensors."""
    a, b = draw(24, 40), draw(16, 40)
    key = direct_calls.key_of(a, b, direct_calls.How())
    monkeypatch.setattr(direct_calls, "_kernels", {})
    asked = []
    monkeypatch.setattr(Kernel, "relaunched", lambda *given: asked.append(given) or len(asked) > 1)
    out = torch.full((24, 16), 7.0, dtype=torch.bfloat16)
    direct_calls.product_into(a, b, key, out=out)
    assert not asked
    assert_product(out, a, b)
    for _ in range(2):
        out.fill_(7)
        direct_calls.product_into(a, b, key, out=out)
        if len(asked) == 1:
            assert_product(out, a, b)
    assert (out == 7).all(), "the second time it was launched"
    assert [given[1:] for given in asked] == [((a, b), out)] * 2


def test_keys_are_kept_up_to_a_number(monkeypatch):
    monkeypatch.setattr(direct_calls, "_kernels", {})
    monkeypatch.setattr(direct_calls, "KEPT", 2)
    for number in range(5):
        direct_calls._keep(str(number), object(), changes())
    direct_calls._keep("none", None, changes())
    assert len(direct_calls._kernels) == 1


@pytest.mark.slow
def test_code_in_cpp_calls_the_operator():
    """Neither precompiled headers, which take as long as all of the rest, nor optimized."""
    a, b = draw(24, 40), draw(16, 40)
    quick = {
        "cpp_cache_precompile_headers": False,
        "aot_inductor.compile_wrapper_opt_level": "O0",
    }
    with torch._inductor.config.patch({"cpp_wrapper": True, **quick}):
        c, code, _ = compiled(matmul, a, b)
    assert DIRECT not in code
    assert c.equal(matmul(a, b))


@pytest.mark.slow
def test_branches_of_a_graph_call_directly():
    a, b = draw(24, 40), draw(16, 40)

    def function(flag, a, b):
        return torch.cond(flag, lambda a, b: matmul(a, b), lambda a, b: matmul(a, b) + 1, (a, b))

    c, code, made = compiled(function, torch.tensor(True), a, b)
    assert code.count(DIRECT) == 2
    assert c.equal(matmul(a, b))
    assert made(torch.tensor(False), a, b).equal(matmul(a, b) + 1)


def test_a_region_of_one_output_is_called_directly():
    torch.compiler.reset()
    x, w = draw(16, 32), draw(48, 32)
    options = {"device": "emulator", "target": "sm_90a"}
    made = torch.compile(lambda x, w: torch.relu(x @ w.T), backend="tilewright", options=options)
    with torch.no_grad():
        y, codes = run_and_get_code(made, x, w)
        assert "tilewright_extern_kernels_region_into(" in codes[0]
        assert "torch.ops.tilewright" not in codes[0]
        torch.testing.assert_close(y, torch.relu(x @ w.T))
        other = torch.randn(16, 32).bfloat16()
        torch.testing.assert_close(made(other, w), torch.relu(other @ w.T))


def test_a_region_of_two_outputs_is_called_without_the_dispatcher():
    torch.compiler.reset()
    x, w = draw(16, 32), draw(48, 32)

    def function(x, w):
        y = x @ w.T
        return y, torch.relu(y)

    options = {"device": "emulator", "target": "sm_90a"}
    made = torch.compile(function, backend="tilewright", options=options)
    with torch.no_grad():
        found, codes = run_and_get_code(made, x, w)
        assert "= torch.ops.tilewright.region.direct(" in codes[0]
        assert "region.default(" not in codes[0]
        torch.testing.assert_close(found, function(x, w))
        other = torch.randn(16, 32).bfloat16()
        torch.testing.assert_close(made(other, w), function(other, w))
