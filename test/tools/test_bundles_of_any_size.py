"""A bundle of any M, any batch, both, or any K, from the command line to calls of other sizes."""

import copy
import pickle
import re
from dataclasses import dataclass, replace

import pytest
import torch

from tilewright.compiler import buckets
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import OptionError
from tilewright.runtime import BundleError, LaunchError, load, read_bundle
from tilewright.runtime.bundles.manifest import validate

M, N, K = 24, 40, 72


@dataclass(frozen=True)
class Form:
    """Which sizes a call says: `shapes` are the leading dims of a in calls that come in turn."""

    fields: dict
    shapes: tuple[tuple[int, ...], ...]
    flags: tuple[str, ...]  # of run, for shapes[0]
    missing: str  # what run says without the last of them


FORMS = {
    "m": Form(
        {"m": 64, "dynamic_m": True},
        ((5,), (0,), (1,), (70,), (5,)),
        ("--m-dynamic", "5"),
        "a kernel for any M must come with --m-dynamic, got none",
    ),
    "batch": Form(
        {"m": M, "batch": 8, "dynamic_batch": True},
        ((3, M), (0, M), (1, M), (5, M), (3, M)),
        ("--batch-dynamic", "3"),
        "a kernel for any batch must come with --batch-dynamic, got none",
    ),
    "both": Form(
        {"m": 64, "batch": 8, "dynamic_m": True, "dynamic_batch": True},
        ((3, 24), (0, 24), (2, 0), (1, 1), (2, 130), (3, 24)),
        ("--m-dynamic", "24", "--batch-dynamic", "3"),
        "a kernel for any batch must come with --batch-dynamic, got none",
    ),
}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """The path of the bundle of each form."""
    place = tmp_path_factory.mktemp("any")
    return {
        name: as_bundle(
            compile_matmul(MatmulSpec(n=N, k=K, **form.fields), target="sm_90a"),
            place / f"{name}.zip",
        ).path
        for name, form in FORMS.items()
    }


def operands(*leading: int) -> tuple[torch.Tensor, torch.Tensor]:
    """a of these dims before K, and b, of a stack where there is one."""
    generator = torch.Generator().manual_seed(sum(leading))
    shapes = (*leading, K), (*leading[:-1], N, K)
    a, b = (torch.randn(shape, generator=generator) for shape in shapes)
    return a.bfloat16(), b.bfloat16()


def is_product(c, a, b, factor=1) -> bool:
    wanted = factor * (a.double() @ b.double().mT)
    near = (c.double() - wanted).abs() <= 2**-7 * wanted.abs() + 1e-3
    return c.shape == wanted.shape and bool(near.all())


@pytest.mark.parametrize("name", FORMS)
def test_a_loaded_kernel_takes_any_sizes(bundles, name):
    kernel = load(bundles[name])
    for leading in FORMS[name].shapes:
        a, b = operands(*leading)
        assert is_product(kernel(a, b), a, b)
    a, b = operands(*(2,) * (len(leading) - 1), M if name == "batch" else 9)
    out = torch.full((*a.shape[:-1], N), torch.nan, dtype=torch.bfloat16)
    assert kernel(a, b, out=out) is out and is_product(out, a, b)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("m", ((3,), (7,), (65,))),
        ("batch", ((3, M), (2, M), (5, M))),
        ("both", ((3, 9), (2, 17), (5, 6))),
    ],
)
def test_torch_compiles_one_graph_for_all_sizes(bundles, name, shapes):
    from torch._dynamo.testing import CompileCounter

    kernel, counter = load(bundles[name]), CompileCounter()
    doubled = torch.compile(lambda a, b: kernel(a, b) * 2, dynamic=True, backend=counter)
    for leading in shapes:
        a, b = operands(*leading)
        assert is_product(doubled(a, b), a, b, factor=2)
    assert counter.frame_count == 1


@pytest.mark.parametrize(
    ("name", "a", "out", "said"),
    [
        ("m", (4, 41), None, f"tensor 'a': shape must be [4, {K}], got [4, 41]"),
        ("m", (1, 4, K), None, f"argument 'a': must have rows and columns, got [1, 4, {K}]"),
        ("m", (K,), None, f"argument 'a': must have rows and columns, got [{K}]"),
        ("m", (4, K), (5, N), f"tensor 'c': shape must be [4, {N}], got [5, {N}]"),
        ("m", (0, K), (5, N), f"tensor 'c': shape must be [0, {N}], got [5, {N}]"),
        ("m", (0, 41), None, f"tensor 'a': shape must be [0, {K}], got [0, 41]"),
        ("batch", (2, M, 41), None, f"tensor 'a': shape must be [2, {M}, {K}], got [2, {M}, 41]"),
        ("batch", (3, M, K), None, f"tensor 'b': shape must be [3, {N}, {K}], got [2, {N}, {K}]"),
        ("batch", (M, K), None, f"argument 'a': must be a stack of matrices, got [{M}, {K}]"),
        (
            *("batch", (2, M, K), (3, M, N)),
            f"tensor 'c': shape must be [2, {M}, {N}], got [3, {M}, {N}]",
        ),
        ("batch", (0, M, K), None, f"tensor 'b': shape must be [0, {N}, {K}], got [2, {N}, {K}]"),
        ("both", (2, 9, 41), None, f"tensor 'a': shape must be [2, 9, {K}], got [2, 9, 41]"),
        ("both", (3, 9, K), None, f"tensor 'b': shape must be [3, {N}, {K}], got [2, {N}, {K}]"),
        ("both", (9, K), None, f"argument 'a': must be a stack of matrices, got [9, {K}]"),
        ("both", (2, 9, K), (2, 8, N), f"tensor 'c': shape must be [2, 9, {N}], got [2, 8, {N}]"),
        ("both", (2, 0, K), (2, 8, N), f"tensor 'c': shape must be [2, 0, {N}], got [2, 8, {N}]"),
    ],
)
def test_tensors_of_other_sizes_are_refused(bundles, name, a, out, said):
    b = operands(*(() if name == "m" else (2,)), 1)[1]
    result = None if out is None else torch.zeros(out, dtype=torch.bfloat16)
    with pytest.raises(LaunchError) as caught:
        load(bundles[name])(torch.zeros(a).bfloat16(), b, out=result)
    assert str(caught.value) == said


def test_an_output_of_matrices_is_refused_where_there_are_none(bundles):
    a, b = operands(0, M)
    said = rf"tensor 'c': shape must be \[0, {M}, {N}\], got \[3, {M}, {N}\]"
    with pytest.raises(LaunchError, match=said):
        load(bundles["batch"])(a, b, out=torch.zeros(3, M, N, dtype=torch.bfloat16))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_of_a_kernel_takes_any_size_too(bundles, again):
    kernel, (a, b) = load(bundles["batch"]), operands(2, M)
    assert torch.equal(again(kernel)(a, b), kernel(a, b))


def test_matrices_with_gaps_between_them_are_refused(bundles):
    a, b = operands(2, 12)
    said = r"tensor 'a': strides \(in elements\) must be \[648, 72, 1\], got \[864, 72, 1\]"
    with pytest.raises(LaunchError, match=said):
        load(bundles["both"])(a[:, :9], b)


BROKEN = {
    "m": [
        (lambda m: m["tensors"][1].update(shape=["m", K]), "b must not have 'm' as its rows"),
        (lambda m: m["tensors"][2].update(shape=[64, N]), "c must have 'm' as its rows"),
        (lambda m: m["parameters"].pop(), "parameters: must have 1 of kind 'size', got 0"),
        (lambda m: m["grid"].__setitem__(0, 7), "parameters: must have 0 of kind 'size', got 1"),
        (lambda m: m["grid"][0].update(rows=32), "a CTA for each tile of"),
        (lambda m: m["grid"][0].update(rows=0), "must be an integer from 1"),
        (lambda m: m["parameters"][0]["dims"].__setitem__(1, 64), "must reach over"),
    ],
    "batch": [
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
    "both": [
        (lambda m: m["tensors"][1].update(shape=["batch", "m", K]), "b must not have 'm' as its"),
        (lambda m: m["tensors"][0].update(shape=["batch", 9, K]), "a must have 'm' as its rows"),
        (lambda m: m["tensors"][0].update(shape=["m", "batch", K]), "as its first dim alone"),
        (lambda m: m["tensors"][0].update(strides=[640, K, 1]), "a must have a step for each row"),
        (
            lambda m: m["tensors"][1].update(strides=[{"size": "m", "times": K}, K, 1]),
            "b must have a step for each row between matrices of any M, or along the columns",
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
}


@pytest.mark.parametrize(
    ("name", "change", "said"), [(name, *row) for name, rows in BROKEN.items() for row in rows]
)
def test_a_manifest_that_breaks_a_rule_is_refused(bundles, name, change, said):
    manifest = copy.deepcopy(dict(read_bundle(bundles[name]).manifest))
    change(manifest)
    with pytest.raises(BundleError) as caught:
        validate(manifest)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", FORMS)
def test_run_takes_the_sizes_of_a_kernel_for_any(bundles, tilewright, name):
    form, path = FORMS[name], bundles[name]
    ran = tilewright("run", path, *form.flags, "--json")
    assert ran.status == 0, ran.err
    a, b = operands(*form.shapes[0])
    assert ran.json["comparison"]["elements"] == (a.double() @ b.double().mT).numel()
    without = tilewright("run", path, *form.flags[:-2])
    assert without.status == 2 and form.missing in without.err


def test_run_refuses_a_size_that_a_kernel_knows(bundles, tilewright):
    other = tilewright("run", bundles["batch"], "--m-dynamic", "3", "--batch-dynamic", "3")
    assert other.status == 2
    assert "--m-dynamic must come with a kernel for any M, got 3 for one of one M" in other.err


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("m", {}),
        ("batch", {}),
        ("batch", {"a_stacked": False}),
        ("both", {}),
        ("both", {"a_stacked": False}),
        ("both", {"b_stacked": False, "lda": 80}),
    ],
)
def test_linalg_of_any_sizes_is_held_to_its_text(tilewright, tmp_path, name, more):
    form, source = FORMS[name], tmp_path / "any.mlir"
    source.write_text(MatmulSpec(**{"n": N, "k": K, **form.fields, "m": 16, **more}).mlir_text())
    ran = tilewright("run", source, *form.flags, "--target", "sm_80", "--json")
    assert ran.status == 0, ran.err
    assert "evaluated op by op" in ran.json["reference"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
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


def test_tiles_of_any_m_are_not_counted(tilewright, bundles):
    refused = tilewright("explain", "roofline", bundles["m"])
    assert refused.status != 0
    assert "must be of known sizes, whose tiles can be counted, got a kernel for any" in refused.err


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


def test_explain_tells_which_rows_are_those_of_a_multiple(tilewright, monkeypatch):
    def two(spec, target):
        assert target == "sm_90a" and spec.a_major == "m"
        own = replace(spec, multiple_m=8)
        return [Bucket(own, "tiling,tma-insertion", ((1, 64),)), Bucket(spec, "tiling")]

    monkeypatch.setattr(buckets, "buckets_for", two)
    sizes = ("--m", "dynamic", "--n", "96", "--k", "200", "--a-major", "m", "--target", "sm_90a")
    shown = tilewright("explain", "schedule", *sizes).out
    assert re.search(r" 1 to 64 +multiples of 8 +tiling,tma-insertion", shown)
    assert re.search(r" 1 or more +others +tiling ", shown)
    told = tilewright("explain", "schedule", *sizes, "--json").json["kernels"]
    assert [each["multiple"] for each in told] == [8, 1]


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


def test_a_bundle_from_the_command_line_holds_kernels_that_share_all_k(tilewright, tmp_path):
    """Of which each takes any K, also none: the sums are zeros then."""
    sizes = ("--k", "dynamic", "--m", "72", "--n", "40", "--a-major", "m", "--b-major", "n")
    told = tilewright("explain", "schedule", *sizes)
    assert "any K" in told.out and "split-k" in told.out
    made = tilewright("compile", *sizes, "-o", tmp_path / "any.zip", "--json")
    assert made.status == 0, made.err
    assert len(read_bundle(tmp_path / "any.zip").kernels) > 1
    for k in (0, 1, 2000):
        ran = tilewright("run", tmp_path / "any.zip", "--k-dynamic", str(k), "--json")
        assert ran.status == 0 and ran.json["comparison"]["elements"] == 72 * 40
        assert (ran.json["comparison"]["largest_error"] == 0) == (k == 0)


def test_a_kernel_for_any_k_may_run_on_none(tilewright):
    sizes = ("--m", "72", "--n", "40", "--a-major", "m", "--b-major", "n", "--c-dtype", "f32")
    ran = tilewright("run", "--k-dynamic", "0", *sizes, "--pipeline", "tiling,split-k{over=grid}")
    assert ran.status == 0, ran.err
    assert "K is 0, for which a and b have one column of zeros" in ran.out
