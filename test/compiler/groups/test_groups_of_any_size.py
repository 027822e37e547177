"""`grouped_mm(m="dynamic")`: a new number of rows, or of k, compiles nothing, nor do gradients."""

import pytest
import torch

from tilewright import grouped_mm
from tilewright.compiler.calls.grouped import grouped_any, grouped_operator
from tilewright.compiler.calls.kernels import lookup
from tilewright.dialects.errors import CompileError, OptionError

GROUPS, K, N = 3, 40, 24


def draw(*sizes, seed=0):
    torch.manual_seed(seed)
    return torch.randn(*sizes).bfloat16()


def ends(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


@pytest.fixture
def compiled(monkeypatch):
    """The specs that are compiled, those of known sizes too."""
    found = []
    for module in (lookup, grouped_any):
        make = module.cached_bundle
        monkeypatch.setattr(
            module,
            "cached_bundle",
            lambda source, *how, make=make, **named: (
                found.append(source) or make(source, *how, **named)
            ),
        )
    return found


CALLS = [(ends(3, 3, 20), 20), (ends(0, 30, 41), 41), (ends(0, 0, 0), 0), (ends(1, 2, 2), 5)]


def exact(a, b, offs):
    rows = torch.zeros(len(a), b.shape[2])
    begin = 0
    for group, end in enumerate(offs.tolist()):
        rows[begin:end] = a[begin:end].float() @ b[group].float()
        begin = max(begin, end)
    return rows


def test_rows_of_any_number_share_kernels(compiled):
    b = draw(GROUPS, K, N, seed=1)
    for offs, count in CALLS:
        a, last = draw(count, K, seed=count), int(offs[-1])
        got = grouped_mm(a, b, offs=offs, m="dynamic")
        torch.testing.assert_close(
            got[:last].float(), exact(a, b, offs)[:last], rtol=2e-2, atol=2e-2
        )
    assert compiled and all(each.dynamic_m for each in compiled)


def weighed(acc, bias, weights, residual):
    return torch.relu(acc + bias) * weights + residual, acc


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("transposed", [False, True])
def test_rows_of_any_number_have_an_epilogue(compiled, target, transposed):
    """Of a row for each group, a value for each row, and a whole matrix."""
    b = draw(GROUPS, N, K, seed=1).mT if transposed else draw(GROUPS, K, N, seed=1)
    bias = torch.randn(GROUPS, 1, N)
    for offs, count in ((ends(0, 1, 1), 1), *CALLS, (ends(8, 20, N), N)):
        a, weights, residual = draw(count, K, seed=count), torch.rand(count, 1), draw(count, N)
        how = {"m": "dynamic", "target": target, "epilogue": weighed}
        found = grouped_mm(a, b, offs=offs, operands=[bias, weights, residual], **how)
        last = int(offs[-1])
        own = bias.repeat_interleave(offs.diff(prepend=ends(0)).clamp(min=0), 0)[:, 0]
        beside = weights[:last], residual[:last].float()
        wanted = weighed(exact(a, b, offs)[:last], own[:last], *beside)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one[:last].float(), other, rtol=2e-2, atol=2e-2)
    assert all("?x" in each.text for each in compiled)


def test_two_products_of_any_number_of_rows_share_kernels(compiled):
    pair = draw(GROUPS, K, N, seed=1), draw(GROUPS, K, N, seed=2)
    for offs, count in CALLS:
        a, last = draw(count, K, seed=count), int(offs[-1])
        found = grouped_mm(a, pair, offs=offs, m="dynamic", epilogue=lambda x, y: x * y)
        wanted = (exact(a, pair[0], offs) * exact(a, pair[1], offs))[:last]
        torch.testing.assert_close(found[:last].float(), wanted, rtol=2e-2, atol=2e-2)
    assert all("?x" in each.text for each in compiled)


def test_a_function_of_the_number_of_rows_is_refused():
    with pytest.raises(CompileError, match="must not depend on the number of rows"):
        grouped_mm(A, B, offs=OFFS, m="dynamic", epilogue=lambda acc: acc * acc.shape[0])


def test_k_of_any_size_has_one_kernel(compiled):
    for offs, count in CALLS:
        x, y = draw(count, N, seed=count), draw(count, K, seed=count + 1)
        got = grouped_mm(x.T, y, offs=offs, m="dynamic")
        begin = 0
        for group, end in enumerate(offs.tolist()):
            wanted = x[begin:end].float().T @ y[begin:end].float()
            torch.testing.assert_close(got[group].float(), wanted, rtol=2e-2, atol=4e-2)
            begin = end
    (spec,) = compiled
    assert spec.dynamic_k and spec.groups == GROUPS


def test_gradients_are_of_any_size_too(compiled):
    b = draw(GROUPS, K, 32, seed=1).requires_grad_()
    for offs, count in CALLS[:2]:
        a = draw(count, K, seed=count).requires_grad_()
        b.grad = None
        grouped_mm(a, b, offs=offs, m="dynamic").float().square().sum().backward()
        wide = [each.detach().float().requires_grad_() for each in (a, b)]
        begin, parts = 0, []
        for group, end in enumerate(offs.tolist()):
            parts.append(wide[0][begin:end] @ wide[1][group])
            begin = end
        torch.cat(parts).square().sum().backward()
        for got, wanted in zip((a, b), wide, strict=True):
            scale = wanted.grad.abs().max()
            assert ((got.grad.float() - wanted.grad).abs().max() / scale) < 0.02
    assert {each.open_sizes for each in compiled} == {("m",), ("k",)}


def test_a_graph_is_traced_once_for_every_number_of_rows(compiled):
    """Whose gradients have kernels for any number of them, too, as its sizes are symbols there."""

    def function(a, b, offs):
        return grouped_mm(a, b, offs=offs, m="dynamic").float().square().sum()

    b = draw(GROUPS, 48, N, seed=1).requires_grad_()
    torch._dynamo.reset()
    traced = torch.compile(function, backend="aot_eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for offs, count in CALLS[:2]:
            a = draw(count, 48, seed=count).requires_grad_()
            torch._dynamo.mark_dynamic(a, 0)
            found = []
            for each in (traced, function):
                a.grad = b.grad = None
                each(a, b, offs).backward()
                found.append((a.grad, b.grad))
            for got, wanted in zip(*found, strict=True):
                torch.testing.assert_close(got, wanted, rtol=0, atol=0)
    assert {each.open_sizes for each in compiled} == {("m",), ("k",)}


def test_an_operator_that_was_saved_before_has_one_input_less():
    a, b, offs = draw(20, K), draw(GROUPS, K, N), ends(3, 3, 20)
    texts = ("",) * 6
    got = grouped_operator.grouped_operator(a, b, offs, None, "", False, *texts)
    torch.testing.assert_close(got.float(), exact(a, b, offs), rtol=2e-2, atol=2e-2)


A, B, OFFS = draw(20, K), draw(GROUPS, K, N), ends(3, 3, 20)


@pytest.mark.parametrize(
    ("given", "more", "rule"),
    [
        ((A, B), {"m": "any"}, "m must be 'dynamic', got 'any'; leave it out"),
        (
            (A, B),
            {"rows": ends(0, 1)},
            "m must be None with rows, and of a grouped k with an epilogue, got rows",
        ),
        (
            (A.T, A),
            {"epilogue": torch.relu},
            "m must be None with rows, and of a grouped k with an epilogue, got an epilogue",
        ),
        (
            (A.T, (A, A)),
            {},
            "m must be None but for grouped rows and k, of mat_a [rows, k] or [m, k], got "
            "[40, 20] and [20, 40] and [20, 40]; leave it out",
        ),
        (
            (draw(K, 20).T, B),
            {},
            "mat_a must be contiguous with m='dynamic', got strides [1, 20]",
        ),
        (
            (draw(N, 20), draw(20, K)),
            {},
            "m='dynamic' must come with 16 bits and a k that is rows of both in memory, got "
            f"torch.bfloat16, strides [20, 1] and [{K}, 1]; "
            "leave it out, or pass x.T of an x [k, m]",
        ),
    ],
)
def test_other_groups_of_any_size_are_refused(given, more, rule):
    with pytest.raises(OptionError) as refused:
        grouped_mm(*given, **{"offs": OFFS, "m": "dynamic"} | more)
    assert str(refused.value) == f"error: grouped_mm: {rule}"
