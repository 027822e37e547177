"""A and B exchanged where the tensor core multiplies by block scales: each keeps its own."""

import pytest

from tilewright.compiler.spec import MatmulSpec

PREFIXES = ("tiling", "swizzle-selection", "clustering", "pipelining", "persistence")
PAIRS = (("mxfp8", "mxfp4"), ("nvfp4", "nvfp4"), ("mxfp4", "mxfp6"), ("mxfp8_e5m2", "mxfp8"))


def passes(last="persistence", rows=128, depth=128, shape="2x1 pair=true"):
    cells = (
        f"tiling{{tile={rows}x64x{depth} swap=true}}",
        "tma-insertion",
        "swizzle-selection",
        f"clustering{{shape={shape}}}",
        "pipelining{stages=2}",
        "warp-specialization",
        "persistence",
    )
    return ",".join(cells[: 1 + next(at for at, each in enumerate(cells) if last in each)])


def spec_of(types=("mxfp8", "mxfp8"), m=72, n=136, k=256, **more):
    return MatmulSpec(m, n, k, *types, **more)


@pytest.mark.array(1, last=PREFIXES, types=PAIRS)
def test_every_prefix(check_matmul, last, types):
    """Two tiles along M and two along N, of which the last are ragged."""
    depth = 256 if types[0] == "nvfp4" else 128
    compiled, report = check_matmul(spec_of(types), pipeline=passes(last, depth=depth), seed=1)
    assert compiled.manifest["schedule"]["swapped"] and not report.warnings
    stored = {each["name"]: each["dtype"] for each in compiled.manifest["tensors"]}
    elements = {"mxfp8": "e4m3", "mxfp8_e5m2": "e5m2", "mxfp4": "e2m1", "mxfp6": "e2m3"}
    assert [stored["a"], stored["b"]] == [elements.get(each, "e2m1") for each in types]


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("rows", "shape"), [(64, "2x1 pair=true"), (256, "2x1 pair=true"), (128, "1x2"), (128, "2x1")]
)
def test_clusters_share_the_scales_of_what_they_share(check_matmul, rows, shape):
    """CTAs along the sums' rows have one B, which is the product's A, and along columns one A."""
    check_matmul(spec_of(n=260, m=80, k=192), pipeline=passes(rows=rows, shape=shape), seed=2)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("types", "more"),
    [
        (("nvfp4", "nvfp4"), {"groups": 3}),
        (("mxfp8", "mxfp8"), {"groups": 3, "scale_layout": "linear"}),
        (("mxfp8", "mxfp8"), {"batch": 2, "a_stacked": False, "a_major": "m"}),
        (("mxfp8_1x128", "mxfp8_128x128"), {"further": ("f32",)}),
    ],
)
def test_groups_stacks_and_layouts(check_matmul, types, more):
    depth = 256 if types[0] == "nvfp4" else 128
    spec = spec_of(types, m=40, n=144, **more)
    check_matmul(spec, pipeline=passes(depth=depth, shape="1x1"), seed=3)


def test_a_remark_names_the_operand_that_is_loaded(check_matmul):
    """A vector of scales cannot be cut into parts: B's for CTAs along N."""
    spec = MatmulSpec(40, 136, 128, "e4m3", "e4m3", a_scales="1x128", b_scales="1x128")
    text = "tiling{tile=64x16x128 swap=true},tma-insertion,swizzle-selection,clustering{shape=1x2}"
    compiled, _ = check_matmul(spec, target="sm_90a", pipeline=text)
    (remark,) = compiled.remarks
    assert remark.startswith("remark: clustering: every CTA loads all of b_scales: ")
