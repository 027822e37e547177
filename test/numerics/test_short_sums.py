"""`fp8_sums="hopper"`: sums of 8-bit floats with 14 bits, as an H100's tensor core forms them."""

import math

import numpy as np
import pytest
import torch

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.emulator import LaunchError
from tilewright.runtime.judge.reference import compare, expected_output
from tilewright.runtime.launch.devices import open_device

M, N = 64, 16


def emulated(k, a, b, **options):
    """[M, N] in f32 of a kernel for sm_90a, and the manifest."""
    how = {name: options.pop(name) for name in ("sums",) if name in options}
    spec = MatmulSpec(M, N, k, "e4m3", "e4m3", "f32", **how)
    compiled = compile_matmul(spec, target="sm_90a", pipeline=PIPELINE)
    bundle = Bundle(seal(compiled.manifest, compiled.ptx, b""), compiled.ptx, b"")
    c = torch.full((M, N), math.nan)
    open_device("emulator").launch(bundle, {"a": a, "b": b, "c": c}, check="off", **options)
    return c, compiled.manifest


PIPELINE = "tiling{tile=64x16x128},tma-insertion,swizzle-selection"


def operands(k, of=torch.rand):
    draw = torch.Generator().manual_seed(k)
    return [of((rows, k), generator=draw).to(torch.float8_e4m3fn) for rows in (M, N)]


def one_sum(a, b):
    """The definition, number by number: terms cut 13 bits below the largest exponent of one."""
    total = 0.0
    for start in range(0, len(a), 32):
        pairs = list(zip(a[start : start + 32], b[start : start + 32], strict=True))
        exponents = [_exponent(x) + _exponent(y) for x, y in pairs if x and y]
        exponents += [math.frexp(total)[1] - 1] if total else []
        unit = 2.0 ** (max(exponents, default=0) - 13)
        terms = [x * y for x, y in pairs] + [total]
        total = sum(math.trunc(term / unit) for term in terms) * unit
        own = 2.0 ** (math.frexp(total)[1] - 1 - 13)
        total = math.trunc(total / own) * own if total else 0.0
    return total


def _exponent(value):
    return max(math.frexp(value)[1] - 1, -6)


def test_sums_are_those_of_the_definition():
    a, b = operands(96, torch.randn)
    got, manifest = emulated(96, a, b, fp8_sums="hopper")
    rows, columns = a.double().tolist(), b.double().tolist()
    wanted = [[one_sum(row, column) for column in columns[:4]] for row in rows[:16]]
    assert np.array_equal(got[:16, :4].numpy(), np.float32(wanted))
    limits = expected_output(manifest, {"a": a, "b": b}, on_gpu=True)
    assert compare(limits, got.double().numpy()).passed


def test_the_error_grows_with_k_and_two_levels_keep_it_small():
    """Of positive numbers the worst relative error at K 4096 is percents; DeepSeek saw about 2."""
    worst = {}
    for k, sums in ((256, ""), (2048, ""), (2048, "two-level")):
        a, b = operands(k)
        exact = a.double() @ b.double().T
        got, _ = emulated(k, a, b, fp8_sums="hopper", **({"sums": sums} if sums else {}))
        worst[k, sums] = ((got.double() - exact) / exact).abs().max().item()
    assert worst[2048, ""] > 0.01 and worst[2048, ""] > 4 * worst[256, ""], worst
    assert worst[2048, "two-level"] < worst[256, ""], worst


def test_another_way_to_sum_is_refused():
    a, b = operands(32)
    with pytest.raises(LaunchError, match="fp8_sums must be one of f32, hopper, got 'f16'"):
        emulated(32, a, b, fp8_sums="f16")
