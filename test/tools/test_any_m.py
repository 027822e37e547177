"""A bundle that takes any M, from the command line to calls with different numbers of rows."""

import copy

import pytest
import torch

from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import OptionError
from tilewright.runtime import BundleError, LaunchError, load, read_bundle
from tilewright.runtime.bundles.manifest import validate

N, K = 72, 40


@pytest.fixture(scope="module")
def bundle_path(tmp_path_factory):
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul

    place = tmp_path_factory.mktemp("any-m") / "any.zip"
    compiled = compile_matmul(MatmulSpec(64, N, K, dynamic_m=True), target="sm_90a")
    return as_bundle(compiled, place).path


def operands(m: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(m)
    a, b = (torch.randn(rows, K, generator=generator) for rows in (m, N))
    return a.bfloat16(), b.bfloat16()


def is_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, factor: int = 1) -> bool:
    wanted = factor * (a.double() @ b.double().T)
    return c.shape == wanted.shape and bool(
        ((c.double() - wanted).abs() <= 2**-7 * wanted.abs() + 1e-3).all()
    )


def test_a_loaded_kernel_takes_any_number_of_rows(bundle_path):
    kernel = load(bundle_path)
    for m in (5, 0, 1, 70, 5):
        a, b = operands(m)
        assert is_product(kernel(a, b), a, b)
    out = torch.full((3, N), torch.nan, dtype=torch.bfloat16)
    a, b = operands(3)
    assert kernel(a, b, out=out) is out and is_product(out, a, b)


def test_torch_compiles_one_graph_for_every_m(bundle_path):
    from torch._dynamo.testing import CompileCounter

    kernel, counter = load(bundle_path), CompileCounter()
    doubled = torch.compile(lambda a, b: kernel(a, b) * 2, dynamic=True, backend=counter)
    for m in (3, 7, 65):
        a, b = operands(m)
        assert is_product(doubled(a, b), a, b, factor=2)
    assert counter.frame_count == 1


@pytest.mark.parametrize(
    ("a", "out", "said"),
    [
        ((4, 41), None, "tensor 'a': shape must be [4, 40], got [4, 41]"),
        ((1, 4, 40), None, "argument 'a': must have rows and columns, got [1, 4, 40]"),
        ((40,), None, "argument 'a': must have rows and columns, got [40]"),
        ((4, 40), (5, N), "tensor 'c': shape must be [4, 72], got [5, 72]"),
        ((0, 40), (5, N), "tensor 'c': shape must be [0, 72], got [5, 72]"),
    ],
)
def test_tensors_of_other_sizes_are_refused(bundle_path, a, out, said):
    result = None if out is None else torch.zeros(out, dtype=torch.bfloat16)
    with pytest.raises(LaunchError) as caught:
        load(bundle_path)(torch.zeros(a).bfloat16(), operands(1)[1], out=result)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["tensors"][1].update(shape=["m", K]), "b must not have 'm' as its rows"),
        (lambda m: m["tensors"][2].update(shape=[64, N]), "c must have 'm' as its rows"),
        (lambda m: m["parameters"].pop(), "parameters: must have 1 of kind 'size', got 0"),
        (lambda m: m["grid"].__setitem__(0, 7), "parameters: must have 0 of kind 'size', got 1"),
        (lambda m: m["grid"][0].update(rows=32), "a CTA for each tile of"),
        (lambda m: m["grid"][0].update(rows=0), "must be an integer from 1"),
        (lambda m: m["parameters"][0]["dims"].__setitem__(1, 64), "must reach over"),
    ],
)
def test_a_manifest_for_any_m_that_breaks_a_rule_is_refused(bundle_path, change, said):
    manifest = copy.deepcopy(dict(read_bundle(bundle_path).manifest))
    change(manifest)
    with pytest.raises(BundleError) as caught:
        validate(manifest)
    assert said in str(caught.value)


def test_run_takes_the_m_of_a_kernel_for_any(bundle_path, tilewright):
    ran = tilewright("run", bundle_path, "--m-dynamic", "65", "--json")
    assert ran.status == 0, ran.err
    assert ran.json["comparison"]["elements"] == 65 * N
    without = tilewright("run", bundle_path)
    assert without.status == 2
    assert "a kernel for any M must come with --m-dynamic, got none" in without.err


def test_linalg_of_a_dynamic_m_is_held_to_its_text(tilewright, tmp_path):
    source = tmp_path / "any.mlir"
    source.write_text(MatmulSpec(16, N, K, dynamic_m=True).mlir_text())
    ran = tilewright("run", source, "--m-dynamic", "9", "--target", "sm_80", "--json")
    assert ran.status == 0, ran.err
    assert "evaluated op by op" in ran.json["reference"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"a_major": "m"}, "spec: a dynamic m must come with a_major = 'k', got 'm'"),
        ({"batch": 3}, "spec: a dynamic m must come with batch = 0, got 3"),
        (
            {"a_dtype": "mxfp8", "b_dtype": "mxfp8", "k": 64},
            "spec: a dynamic m must come with scaled = False, got True",
        ),
    ],
)
def test_a_dynamic_m_that_no_kernel_takes_is_refused(fields, said):
    with pytest.raises(OptionError, match=said):
        MatmulSpec(**{"m": 64, "n": N, "k": K, "dynamic_m": True, **fields})


def test_explain_tells_the_rows_of_each_kernel(tilewright):
    explain = ("explain", "schedule", "--m", "dynamic", "--n", "96", "--k", "200")
    told = tilewright(*explain, "--json")
    assert told.status == 0, told.err
    kernels = told.json["kernels"]
    ranges = sorted(tuple(rows) for each in kernels for rows in each["ranges"])
    assert ranges[0][0] == 1 and ranges[-1][1] == 2**31 - 1
    assert all("tiling" in each["pipeline"] for each in kernels)
    shown = tilewright(*explain)
    assert f"{ranges[-1][0]} or more" in shown.out and "any M×96×200" in shown.out


def test_tiles_of_any_m_are_not_counted(tilewright, bundle_path):
    refused = tilewright("explain", "roofline", bundle_path)
    assert refused.status != 0
    assert "must be of known sizes, whose tiles can be counted, got a kernel for any" in refused.err


def test_a_bundle_from_the_command_line_holds_the_kernels_that_share_all_m(tilewright, tmp_path):
    made = tilewright(
        "compile", "--m", "dynamic", "--n", "96", "--k", "200", "-o", tmp_path / "any.zip", "--json"
    )
    assert made.status == 0, made.err
    kernels = read_bundle(tmp_path / "any.zip").kernels
    told = [each["spec"]["most_m"] for each in made.json["manifests"]]
    assert [each.manifest["spec"]["most_m"] for each in kernels] == told and len(told) > 1
    ran = tilewright("run", tmp_path / "any.zip", "--m-dynamic", "3", "--json")
    assert ran.status == 0 and ran.json["comparison"]["elements"] == 3 * 96
