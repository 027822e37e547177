"""A and B exchanged where threads multiply by scales of 128 elements: each takes its own."""

import pytest

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

SWAPPED = "tiling{tile=128x16x128 swap=true},"
PREFIXES = ("tiling", "swizzle-selection", "split-k", "pipelining", "warp-specialization")
FORMS = (("1x128", "128x128"), ("128x128", "1x128"), ("1x128", "1x128"))


def spec_of(m, n, k, forms=FORMS[0], **more):
    scales = dict(zip(("a_scales", "b_scales"), forms, strict=True))
    return MatmulSpec(m, n, k, "e4m3", "e4m3", **scales, **more)


def passes(last, over="cluster", tile=SWAPPED):
    rest = f"tma-insertion,swizzle-selection,split-k{{parts=2 over={over}}},pipelining{{stages=2}},"
    whole = f"{tile}{rest}warp-specialization".split(",")
    return ",".join(whole[: 1 + next(at for at, each in enumerate(whole) if last in each)])


@pytest.mark.sweep(4)
@pytest.mark.array(1, last=PREFIXES, forms=FORMS, target=("sm_90a", "sm_100a"))
def test_every_prefix(check_matmul, last, forms, target):
    """Two tiles along N and a part, where a scale of 128 columns ends within one; K and a part."""
    spec = spec_of(24, 264, 464, forms)
    compiled, report = check_matmul(spec, target=target, pipeline=passes(last), seed=1)
    assert compiled.manifest["schedule"]["swapped"]
    assert compiled.manifest["blockwise"] == dict(zip("ab", forms, strict=True))
    assert not report.warnings


@pytest.mark.sweep(2)
@pytest.mark.parametrize("forms", FORMS)
def test_rows_that_tma_cannot_bring_and_stacks(check_matmul, forms):
    """Scales of 25 rows are copied by threads; each matrix of a stack has its own."""
    check_matmul(spec_of(25, 136, 256, forms), target="sm_90a", pipeline=passes("pipelining"))
    stack = spec_of(20, 136, 256, forms, batch=2)
    check_matmul(stack, target="sm_90a", pipeline=passes("swizzle-selection"))


@pytest.mark.sweep(2)
@pytest.mark.array(1, over=("cluster", "grid"), forms=FORMS, target=("sm_90a", "sm_100a"))
def test_steps_of_half_a_block_read_scales_from_their_views(check_matmul, over, forms, target):
    pipeline = passes("warp-specialization", over, "tiling{tile=64x16x64 swap=true},")
    check_matmul(spec_of(9, 200, 512, forms), target=target, pipeline=pipeline)


def test_sums_of_two_levels_are_exchanged_too(check_matmul):
    spec = MatmulSpec(20, 200, 512, "e4m3", "e4m3", sums="two-level")
    check_matmul(spec, target="sm_90a", pipeline=passes("warp-specialization"))
