"""PTX with a launch for any size, and bundles, as subjects of the suite."""

import json
from pathlib import Path

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.conformance import FAMILIES, run_family
from tilewright.runtime.conformance.bundles import BundleSubject
from tilewright.runtime.conformance.campaign import cases_of, try_case
from tilewright.runtime.conformance.cases import Case, Layout
from tilewright.runtime.conformance.launches import LaunchSubject, evaluate
from tilewright.runtime.conformance.verdicts import Verdict
from tilewright.runtime.errors import LaunchError

HERE = Path(__file__).parent
PTX = HERE.parent / "foreign/triton/matmul.sm_80.ptx"
TEMPLATE = HERE / "triton_matmul.json"
FAMILY = {family.name: family for family in FAMILIES}
INPUT = HERE.parent / "numerics/inputs/bias_relu.mlir"


def changed(tmp_path, change):
    """A subject of the Triton kernel with a launch file that was changed."""
    launch = json.loads(TEMPLATE.read_text())
    change(launch)
    path = tmp_path / "launch.json"
    path.write_text(json.dumps(launch))
    return LaunchSubject(PTX, path)


def test_a_triton_kernel_is_right_for_sizes_on_both_sides_of_its_tiles():
    subject = LaunchSubject(PTX, TEMPLATE)
    assert subject.dtypes == ("f16", "f16") and subject.b_shape == "nk"
    for case in (Case(65, 3, 33), Case(1, 1, 1), Case(40, 64, 32, values="nan-in-b")):
        assert try_case(subject, case).verdict is Verdict.RIGHT, case


def test_a_kernel_that_drops_the_tail_of_k_is_wrong(tmp_path):
    def shorten(launch):
        launch["parameters"][5]["scalar"] = "=K - K % 8"
        launch["tensors"][0]["strides"] = launch["tensors"][1]["strides"] = ["=K - K % 8", 1]

    subject = changed(tmp_path, shorten)
    assert try_case(subject, Case(5, 6, 16)).verdict is Verdict.RIGHT
    outcome = try_case(subject, Case(5, 6, 12))
    assert outcome.verdict is Verdict.WRONG and "of 30 elements" in outcome.detail


def test_a_kernel_that_leaves_its_arrays_is_a_fault(tmp_path):
    subject = changed(tmp_path, lambda launch: launch["parameters"][3].update(scalar="=M + 1"))
    outcome = try_case(subject, Case(5, 6, 16))
    assert outcome.verdict is Verdict.FAULT and "out-of-bounds" in outcome.detail


def test_a_size_that_a_launch_does_not_take_is_skipped(tmp_path):
    subject = changed(tmp_path, lambda launch: launch["matmul"].update(takes=["=K % 8 == 0"]))
    outcome = try_case(subject, Case(5, 6, 12))
    assert (outcome.verdict, outcome.detail) == (Verdict.SKIPPED, "it takes K % 8 == 0 only")


def test_expressions_of_sizes_are_evaluated():
    sizes = {"M": 130, "N": 7, "K": 64}
    assert evaluate("=cdiv(M, 64) * -N + align(N, 8)", sizes) == -13
    assert evaluate("=min(M, N) // 2 + max(K, 1) % 10", sizes) == 7
    assert evaluate("=M >= N", sizes) == 1


@pytest.mark.parametrize(
    "text", ["=L", "=M.real", "=open('x')", "=M //0", "=", "=[M]", "=M ** N", "=1 < M < 3", "=M(1)"]
)
def test_other_expressions_are_refused(text):
    with pytest.raises(LaunchError, match="must be an expression in M, N and K, got"):
        evaluate(text, {"M": 1, "N": 2, "K": 3})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda launch: launch.pop("matmul"), "must name the tensors a, b and c, got None"),
        (lambda launch: launch["matmul"].update(d="x"), "must name the tensors a, b and c"),
        (lambda launch: launch["matmul"].update(a="x"), "one of the tensors a, b, c, got 'x'"),
        (lambda launch: launch["matmul"].update(b_shape="mn"), "must be 'kn' or 'nk', got 'mn'"),
        (lambda launch: launch["matmul"].update(size=[1, 2]), "size: must have 3 items, got 2"),
        (lambda launch: launch["matmul"].update(takes=["=Q"]), "must be an expression"),
        (lambda launch: launch["tensors"][0].update(dtype="u16"), "'a' must be of f16, bf16"),
        (lambda launch: launch["tensors"][0].update(dtype=["f16"]), "dtype: must be a text, got"),
        (lambda launch: launch["tensors"].append(1), r"tensors\[3\]: must be an object, got 1"),
        (lambda launch: launch.update(tensors={}), "tensors: must be a list, got {}"),
        (lambda launch: launch.pop("tensors"), "must have the field 'tensors', got none"),
        (lambda launch: launch["matmul"].update(size=3), "size: must be a list, got 3"),
        (lambda launch: launch["matmul"].update(takes=[3]), r"takes\[0\]: must be a text, got 3"),
        (lambda launch: launch["matmul"].update(a=["a"]), "matmul.a: must be a text, got"),
        (lambda launch: launch["matmul"].update(b="a"), "three tensors, got one of them twice"),
        (lambda launch: launch["tensors"][2].update(role="input"), "'c' must have the role output"),
    ],
)
def test_a_template_that_says_too_little_is_refused(tmp_path, change, words):
    with pytest.raises(LaunchError, match=words):
        changed(tmp_path, change)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"entry": "matmul"', '"entry": "other", "entry": "matmul"', "the key 'entry' twice"),
        ('"block": [128]', '"block": [36893488147419103232]', "an integer of more than 64 bits"),
        ('"block": [128]', '"block": ' + "[" * 100 + "]" * 100, "more than 64 levels"),
    ],
)
def test_a_template_that_two_readers_could_read_differently_is_refused(tmp_path, old, new, words):
    path = tmp_path / "launch.json"
    path.write_text(TEMPLATE.read_text().replace(old, new))
    with pytest.raises(LaunchError, match=f"must be JSON, got {words}"):
        LaunchSubject(PTX, path)


def bundle_of(tmp_path, source):
    from tilewright.compiler.bundle_writer import write_bundle

    compiled = compile_matmul(source)
    write_bundle(tmp_path / "k.zip", compiled.manifest, compiled.ptx, compiled.assembled.cubin)
    return BundleSubject(tmp_path / "k.zip", "emulator")


def test_a_bundle_is_right_or_refuses_what_lies_otherwise(tmp_path):
    subject = bundle_of(tmp_path, MatmulSpec(40, 48, 32, a_major="m", b_major="n"))
    assert subject.size == (40, 48, 32) and not subject.any_size
    for name in ("unaligned", "non-finite", "out", "again", "k-tails"):
        result = run_family(subject, FAMILY[name])
        assert not result.failed, result
    padded = try_case(subject, Case(40, 48, 32, a=Layout(padding=8)))
    assert padded.verdict is Verdict.REFUSED and "strides" in padded.detail


def test_a_bundle_is_held_to_its_epilogue(tmp_path):
    subject = bundle_of(tmp_path, INPUT)
    m, n, k = subject.size
    assert try_case(subject, Case(m, n, k)).verdict is Verdict.RIGHT


EIGHT = ("e4m3", "e4m3", "bf16")


@pytest.mark.parametrize(
    ("source", "got"),
    [
        (MatmulSpec(40, 24, 64, groups=3), "one matrix, got groups"),
        (MatmulSpec(40, 24, 64, batch=3), "one matrix, got stacks"),
        (MatmulSpec(40, 24, 64, products=2), "one product, got two"),
        (MatmulSpec(40, 24, 64, further=("f32",)), "one output, got several"),
        (MatmulSpec(40, 24, 64, "mxfp8", "mxfp8"), "without block scales, got scales"),
        (
            MatmulSpec(40, 24, 128, *EIGHT, a_scales="1x128", b_scales="1x128"),
            "without block scales, got scales",
        ),
        (
            MatmulSpec(16, 24, 64, b_dtype="s4", group_size=32, scale_dtype="bf16"),
            "one type, got narrow weights",
        ),
    ],
)
def test_a_bundle_of_another_product_is_refused(tmp_path, source, got):
    with pytest.raises(LaunchError, match=f"{got}; `tilewright run` tries it"):
        bundle_of(tmp_path, source)


def test_a_bundle_of_any_m_is_tried_at_many(tmp_path):
    """One of several kernels, with what its epilogue reads beside each row."""
    from tilewright.compiler.bundle_writer import write_several

    kernels = [
        compile_matmul(
            MatmulSpec(min(most, 64), 40, 32, dynamic_m=True, least_m=least, most_m=most),
            target="sm_90a",
            pipeline=f"tiling{{tile={tile}}},tma-insertion,swizzle-selection",
        )
        for least, most, tile in ((1, 16, "64x16x32 swap=true"), (17, 2**31 - 1, "64x16x32"))
    ]
    write_several(tmp_path / "any.zip", kernels)
    subject = BundleSubject(tmp_path / "any.zip", "emulator")
    assert subject.size[1:] == (40, 32) and subject.any_rows and not subject.any_size
    tried = [case.m for case in cases_of(subject, FAMILY["ragged-m"])]
    assert {1, 16, 17, 65} <= set(tried) and len(tried) == len(set(tried))
    for m in (1, 16, 17, 65, 0):
        assert try_case(subject, Case(m, 40, 32)).verdict is Verdict.RIGHT
    assert run_family(subject, FAMILY["aliased"]).skipped == "it takes one N and one K"
    assert not run_family(subject, FAMILY["threads"]).failed
