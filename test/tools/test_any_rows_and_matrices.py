"""A bundle that takes any M and any batch, from the command line to calls with different stacks."""

import copy

import numpy as np
import pytest
import torch

from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime import BundleError, LaunchError, load, read_bundle
from tilewright.runtime.bundles.manifest import validate

N, K = 40, 72


@pytest.fixture(scope="module")
def bundle_path(tmp_path_factory):
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul

    place = tmp_path_factory.mktemp("any-both") / "any.zip"
    spec = MatmulSpec(64, N, K, batch=8, dynamic_m=True, dynamic_batch=True)
    return as_bundle(compile_matmul(spec, target="sm_90a"), place).path


def operands(batch: int, m: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(batch + m)
    a, b = (torch.randn(batch, rows, K, generator=generator) for rows in (m, N))
    return a.bfloat16(), b.bfloat16()


def is_product(c, a, b, factor=1) -> bool:
    wanted = factor * np.einsum("bmk,bnk->bmn", a.double().numpy(), b.double().numpy())
    actual = c.double().numpy()
    return actual.shape == wanted.shape and bool(
        (np.abs(actual - wanted) <= 2**-7 * np.abs(wanted) + 1e-3).all()
    )


def test_a_loaded_kernel_takes_any_rows_of_any_number_of_matrices(bundle_path):
    kernel = load(bundle_path)
    for sizes in ((3, 24), (0, 24), (2, 0), (1, 1), (2, 130), (3, 24)):
        a, b = operands(*sizes)
        assert is_product(kernel(a, b), a, b)
    out = torch.full((2, 9, N), torch.nan, dtype=torch.bfloat16)
    a, b = operands(2, 9)
    assert kernel(a, b, out=out) is out and is_product(out, a, b)


def test_torch_compiles_one_graph_for_all_sizes(bundle_path):
    from torch._dynamo.testing import CompileCounter

    kernel, counter = load(bundle_path), CompileCounter()
    doubled = torch.compile(lambda a, b: kernel(a, b) * 2, dynamic=True, backend=counter)
    for sizes in ((3, 9), (2, 17), (5, 6)):
        a, b = operands(*sizes)
        assert is_product(doubled(a, b), a, b, factor=2)
    assert counter.frame_count == 1


@pytest.mark.parametrize(
    ("a", "out", "said"),
    [
        ((2, 9, 41), None, f"tensor 'a': shape must be [2, 9, {K}], got [2, 9, 41]"),
        ((3, 9, K), None, f"tensor 'b': shape must be [3, {N}, {K}], got [2, {N}, {K}]"),
        ((9, K), None, f"argument 'a': must be a stack of matrices, got [9, {K}]"),
        ((2, 9, K), (2, 8, N), f"tensor 'c': shape must be [2, 9, {N}], got [2, 8, {N}]"),
        ((2, 0, K), (2, 8, N), f"tensor 'c': shape must be [2, 0, {N}], got [2, 8, {N}]"),
    ],
)
def test_tensors_of_other_sizes_are_refused(bundle_path, a, out, said):
    result = None if out is None else torch.zeros(out, dtype=torch.bfloat16)
    with pytest.raises(LaunchError) as caught:
        load(bundle_path)(torch.zeros(a).bfloat16(), operands(2, 9)[1], out=result)
    assert str(caught.value) == said


def test_matrices_with_gaps_between_them_are_refused(bundle_path):
    a, b = operands(2, 12)
    said = r"tensor 'a': strides \(in elements\) must be \[648, 72, 1\], got \[864, 72, 1\]"
    with pytest.raises(LaunchError, match=said):
        load(bundle_path)(a[:, :9], b)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["tensors"][1].update(shape=["batch", "m", K]), "b must not have 'm' as its"),
        (lambda m: m["tensors"][0].update(shape=["batch", 9, K]), "a must have 'm' as its rows"),
        (lambda m: m["tensors"][0].update(shape=["m", "batch", K]), "as its first dim alone"),
        (lambda m: m["tensors"][0].update(strides=[640, K, 1]), "a must have a step for each row"),
        (
            lambda m: m["tensors"][1].update(strides=[{"size": "m", "times": K}, K, 1]),
            "b must have a step for each row between matrices of any M, and nowhere else",
        ),
        (lambda m: m["parameters"].pop(), "parameters: must have 2 of kind 'size', got 1"),
        (lambda m: m["parameters"].reverse(), "must be the 'm' and 'batch' of the grid, got"),
        (lambda m: m["grid"][0].pop("times"), "grid: must count each of a batch along x"),
        (lambda m: m["grid"][0].update(size="batch"), "grid: must be of 'm' times 'batch', got"),
        (lambda m: m["grid"].reverse(), "grid: must have one formula, along x or y"),
        (lambda m: m["grid"][0].update(rows=2), "a CTA for each tile of"),
        (lambda m: m["parameters"][0]["strides_bytes"].__setitem__(-1, 640), "strides_bytes: must"),
        (lambda m: m["parameters"][0]["strides_bytes"][-1].update(times=160), "must reach over"),
    ],
)
def test_a_manifest_for_any_sizes_that_breaks_a_rule_is_refused(bundle_path, change, said):
    manifest = copy.deepcopy(dict(read_bundle(bundle_path).manifest))
    change(manifest)
    with pytest.raises(BundleError) as caught:
        validate(manifest)
    assert said in str(caught.value)


def test_run_takes_both_sizes_of_a_kernel_for_any(bundle_path, tilewright):
    ran = tilewright("run", bundle_path, "--m-dynamic", "9", "--batch-dynamic", "3", "--json")
    assert ran.status == 0, ran.err
    assert ran.json["comparison"]["elements"] == 3 * 9 * N
    without = tilewright("run", bundle_path, "--m-dynamic", "9")
    assert "a kernel for any batch must come with --batch-dynamic, got none" in without.err
    assert without.status == 2


@pytest.mark.parametrize("more", [{}, {"a_stacked": False}, {"b_stacked": False, "lda": 80}])
def test_linalg_of_both_sizes_is_held_to_its_text(tilewright, tmp_path, more):
    source = tmp_path / "any.mlir"
    spec = MatmulSpec(16, N, K, batch=2, dynamic_m=True, dynamic_batch=True, **more)
    source.write_text(spec.mlir_text())
    sizes = ("--batch-dynamic", "2", "--m-dynamic", "7")
    ran = tilewright("run", source, *sizes, "--target", "sm_80", "--json")
    assert ran.status == 0, ran.err
    assert "evaluated op by op" in ran.json["reference"]


def test_a_bundle_from_the_command_line_holds_kernels_that_share_all_rows(tilewright, tmp_path):
    sizes = ("--m", "dynamic", "--batch", "dynamic", "--n", "96", "--k", "64")
    made = tilewright("compile", *sizes, "--target", "sm_90a", "-o", tmp_path / "any.zip", "--json")
    assert made.status == 0, made.err
    bundle = read_bundle(tmp_path / "any.zip")
    assert len(bundle.kernels) > 1
    run = ("run", tmp_path / "any.zip", "--batch-dynamic", "3", "--json")
    for m in (5, 150):
        ran = tilewright(*run, "--m-dynamic", str(m))
        assert ran.status == 0 and ran.json["comparison"]["elements"] == 3 * m * 96
