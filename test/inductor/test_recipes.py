"""Graphs whose kernels are gone from the cache: they are compiled anew, the same ones."""

import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from graphs import draw

from tilewright.compiler.calls.kernels import kernel_cache, row_kernels
from tilewright.compiler.inductor import operator
from tilewright.compiler.inductor.recipe import recipe_of
from tilewright.compiler.inductor.source import Prepared
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import MANY_ROWS, ROWS_MOST, MatmulSpec
from tilewright.runtime.errors import DeviceError

W, V, BIAS = draw(48, 32), draw(48, 32), draw(48)
OPTIONS = {"device": "emulator", "target": "sm_90a", "processes": 1}


def plain(x):
    return F.linear(x, W)


def fused(x):
    return F.relu(F.linear(x, W, BIAS)), F.silu(x @ W.T) * (x @ V.T)


@pytest.fixture
def forget(tmp_path, monkeypatch):
    """Another process with an empty cache of kernels, where the graph is as it was."""
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path))

    def gone():
        found = {each.name for each in tmp_path.glob("*.zip")}
        for name in found:
            (tmp_path / name).unlink()
        operator._loaded.clear()
        kernel_cache.cached_bundle.cache_clear()
        return found

    gone()
    return gone


@pytest.fixture
def few_kernels(monkeypatch):
    """One for up to 16 rows, and one for more, where the choice would have some more."""

    def made(spec: MatmulSpec, _target: str) -> list[Bucket]:
        bounds = (16, 1, 16), (MANY_ROWS, 17, ROWS_MOST)
        return [
            Bucket(
                replace(spec, m=m, least_m=least, most_m=most),
                "tiling{tile=64x64x32},tma-insertion,swizzle-selection",
                ((least, most),),
            )
            for m, least, most in bounds
        ]

    monkeypatch.setattr(row_kernels, "kept_buckets", made)


@pytest.mark.usefixtures("few_kernels")
@pytest.mark.parametrize(
    ("function", "dynamic"),
    [(plain, False), (fused, False), (plain, True)],
    ids=["a spec", "texts", "any rows"],
)
def test_kernels_that_are_gone_are_made_again(function, dynamic, forget, tmp_path, rows):
    x = draw(40, 32)
    if dynamic:
        torch._dynamo.mark_dynamic(x, 0)
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="tilewright", options=OPTIONS)
    with torch.no_grad():
        before = compiled(x)
        first = forget()
        assert first
        assert all(row.taken for row in rows)
        known = len(rows)
        again = compiled(x)
    torch.testing.assert_close(again, before, rtol=0, atol=0)
    assert {each.name for each in tmp_path.glob("*.zip")} == first
    assert len(rows) == known, "nothing is searched"


def test_a_kernel_that_anybody_can_write_is_not_believed_but_made_again(forget, tmp_path):
    torch._dynamo.reset()
    compiled = torch.compile(plain, backend="tilewright", options=OPTIONS)
    with torch.no_grad():
        before = compiled(draw(40, 32))
        (name,) = forget()
        (tmp_path / name).write_bytes(b"something else")
        (tmp_path / name).chmod(0o666)
        with pytest.warns(UserWarning, match="an entry is compiled again and replaced"):
            again = compiled(draw(40, 32))
    torch.testing.assert_close(again, before, rtol=0, atol=0)


@pytest.mark.parametrize("recipe", ["", "no recipe", "eJwDAAAAAAE=", None])
def test_what_is_no_recipe_of_the_kernel_says_what_to_do(recipe, forget):
    recipe = recipe_of_another() if recipe is None else recipe
    rule = r"^region 0123456789ab: its kernel must be .*\.zip, got none, and compiling it anew: "
    cure = r"trace the model anew with TORCHINDUCTOR_FORCE_DISABLE_CACHES=1$"
    with pytest.raises(DeviceError, match=f"(?s){rule}.*recipe must be .*; {cure}"):
        operator.kernel_of("0123456789abcdef", recipe)


def recipe_of_another():
    spec = MatmulSpec(40, 48, 32)
    return recipe_of(Prepared(spec, spec, "sm_90a", "tiling{tile=64x64x32}", "", []))


def test_recipes_are_short(forget):
    """They stand in the code of a graph for every call."""
    assert re.fullmatch(r"[\w+/=]{,1000}", recipe_of_another())
