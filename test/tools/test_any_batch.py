"""A bundle that takes any batch, from the command line to calls with different stacks."""

import copy

import numpy as np
import pytest
import torch

from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime import BundleError, LaunchError, load, read_bundle
from tilewright.runtime.bundles.manifest import validate

M, N, K = 24, 40, 72


@pytest.fixture(scope="module")
def bundle_path(tmp_path_factory):
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul

    place = tmp_path_factory.mktemp("any-batch") / "any.zip"
    spec = MatmulSpec(M, N, K, batch=8, dynamic_batch=True)
    return as_bundle(compile_matmul(spec, target="sm_90a"), place).path


def operands(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(batch)
    a, b = (torch.randn(batch, rows, K, generator=generator) for rows in (M, N))
    return a.bfloat16(), b.bfloat16()


def is_product(c, a, b, factor=1) -> bool:
    wanted = factor * np.einsum("bmk,bnk->bmn", a.double().numpy(), b.double().numpy())
    actual = c.double().numpy()
    return actual.shape == wanted.shape and bool(
        (np.abs(actual - wanted) <= 2**-7 * np.abs(wanted) + 1e-3).all()
    )


def test_a_loaded_kernel_takes_any_number_of_matrices(bundle_path):
    kernel = load(bundle_path)
    for batch in (3, 0, 1, 5, 3):
        a, b = operands(batch)
        assert is_product(kernel(a, b), a, b)
    out = torch.full((2, M, N), torch.nan, dtype=torch.bfloat16)
    a, b = operands(2)
    assert kernel(a, b, out=out) is out and is_product(out, a, b)


def test_torch_compiles_one_graph_for_every_batch(bundle_path):
    from torch._dynamo.testing import CompileCounter

    kernel, counter = load(bundle_path), CompileCounter()
    doubled = torch.compile(lambda a, b: kernel(a, b) * 2, dynamic=True, backend=counter)
    for batch in (3, 2, 5):
        a, b = operands(batch)
        assert is_product(doubled(a, b), a, b, factor=2)
    assert counter.frame_count == 1


@pytest.mark.parametrize(
    ("a", "out", "said"),
    [
        ((2, M, 41), None, f"tensor 'a': shape must be [2, {M}, {K}], got [2, {M}, 41]"),
        ((3, M, K), None, f"tensor 'b': shape must be [3, {N}, {K}], got [2, {N}, {K}]"),
        ((M, K), None, f"argument 'a': must be a stack of matrices, got [{M}, {K}]"),
        ((2, M, K), (3, M, N), f"tensor 'c': shape must be [2, {M}, {N}], got [3, {M}, {N}]"),
        ((0, M, K), (3, M, N), f"tensor 'c': shape must be [0, {M}, {N}], got [3, {M}, {N}]"),
    ],
)
def test_tensors_of_other_sizes_are_refused(bundle_path, a, out, said):
    result = None if out is None else torch.zeros(out, dtype=torch.bfloat16)
    with pytest.raises(LaunchError) as caught:
        load(bundle_path)(torch.zeros(a).bfloat16(), operands(2)[1], out=result)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["tensors"][1].update(shape=[8, N, K]), "b must be a stack of 'batch'"),
        (lambda m: m["tensors"][2].update(shape=[M, N]), "c must be a stack of 'batch' matrices"),
        (lambda m: m["tensors"][0].update(shape=["m", M, K]), "a: must be the 'batch' of the grid"),
        (lambda m: m["tensors"][0].update(shape=["batch", "batch", K]), "as its first dim alone"),
        (lambda m: m["parameters"].pop(), "parameters: must have 1 of kind 'size', got 0"),
        (lambda m: m["parameters"][-1].update(size="m"), "must be the 'batch' of the grid, got"),
        (lambda m: m["grid"].__setitem__(0, 7), "parameters: must have 0 of kind 'size', got 1"),
        (lambda m: m["grid"].reverse(), "grid: must have one formula, along x or y"),
        (lambda m: m["grid"][0].update(rows=2), "grid: must count each of a batch along x"),
        (lambda m: m["grid"][0].update(clusters=99), "a CTA for each tile of"),
        (lambda m: m["parameters"][0]["dims"].__setitem__(2, 8), "must reach over"),
    ],
)
def test_a_manifest_for_any_batch_that_breaks_a_rule_is_refused(bundle_path, change, said):
    manifest = copy.deepcopy(dict(read_bundle(bundle_path).manifest))
    change(manifest)
    with pytest.raises(BundleError) as caught:
        validate(manifest)
    assert said in str(caught.value)


def test_run_takes_the_batch_of_a_kernel_for_any(bundle_path, tilewright):
    ran = tilewright("run", bundle_path, "--batch-dynamic", "3", "--json")
    assert ran.status == 0, ran.err
    assert ran.json["comparison"]["elements"] == 3 * M * N
    without = tilewright("run", bundle_path)
    assert "a kernel for any batch must come with --batch-dynamic, got none" in without.err
    other = tilewright("run", bundle_path, "--m-dynamic", "3", "--batch-dynamic", "3")
    assert without.status == other.status == 2
    assert "--m-dynamic must come with a kernel for any M, got 3 for one of one M" in other.err


@pytest.mark.parametrize("shared", [{}, {"a_stacked": False}])
def test_linalg_of_a_dynamic_batch_is_held_to_its_text(tilewright, tmp_path, shared):
    source = tmp_path / "any.mlir"
    spec = MatmulSpec(16, N, K, batch=2, dynamic_batch=True, **shared)
    source.write_text(spec.mlir_text())
    ran = tilewright("run", source, "--batch-dynamic", "2", "--target", "sm_80", "--json")
    assert ran.status == 0, ran.err
    assert "evaluated op by op" in ran.json["reference"]


def test_a_bundle_from_the_command_line_holds_kernels_that_share_all_batches(tilewright, tmp_path):
    sizes = ("--batch", "dynamic", "--m", "200", "--n", "96", "--k", "64", "--target", "sm_90a")
    told = tilewright("explain", "schedule", *sizes, "--json")
    ranges = sorted(tuple(each) for kernel in told.json["kernels"] for each in kernel["ranges"])
    assert ranges[0][0] == 1 and ranges[-1][1] == 2**31 - 1
    made = tilewright("compile", *sizes, "-o", tmp_path / "any.zip", "--json")
    assert made.status == 0, made.err
    bundle = read_bundle(tmp_path / "any.zip")
    assert len(bundle.kernels) == len(told.json["kernels"]) > 1
    tiles = [bundle.at(least).manifest["schedule"]["tile"][:2] for least, _ in ranges]
    wanted = {
        least: kernel["pipeline"]
        for kernel in told.json["kernels"]
        for least, _ in kernel["ranges"]
    }
    assert all(
        f"tile={m}x{n}x" in wanted[least] for (least, _), (m, n) in zip(ranges, tiles, strict=True)
    )
    ran = tilewright("run", tmp_path / "any.zip", "--batch-dynamic", "1", "--json")
    assert ran.status == 0 and ran.json["comparison"]["elements"] == 200 * 96
