"""A product that adds the same bytes of A and B to the same sums twice is told of."""

import re

import pytest
from ptx_faults.kernels import compiled, verdict

from tilewright.runtime.bundles.bundle import Bundle
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

PRODUCT = re.compile(r"^\s*(?:@%p\d+\s+)?(?:wgmma\.mma_async|tcgen05\.mma)\.")
KERNELS = ("one slot", "tcgen05", "nvfp4 in pairs", "groups of mxfp8")


def products(name: str) -> tuple[list[str], list[int]]:
    """The lines of a kernel, and where its products stand."""
    lines = compiled(name).ptx.splitlines()
    return lines, [at for at, line in enumerate(lines) if PRODUCT.match(line)]


@pytest.mark.parametrize("name", KERNELS)
def test_a_product_that_is_issued_twice_is_told_of(name):
    lines, found = products(name)
    last = found[-1]
    lines[last] += " " + lines[last].strip()
    text = "\n".join(lines) + "\n"
    assert verdict(name, text, 0) == "a warning"
    assert "repeated-product" in warned(name, text)


def test_a_slice_of_k_that_is_multiplied_again_in_the_place_of_another_is_told_of():
    lines, found = products("one slot")
    operands = re.compile(r"(%rd\d+), (%rd\d+), (%p\d+)")
    first, second = (operands.search(lines[at]) for at in found[:2])
    assert first and second and first[0] != second[0]
    lines[found[1]] = lines[found[1]].replace(second[0], f"{first[1]}, {first[2]}, {second[3]}")
    assert "repeated-product" in warned("one slot", "\n".join(lines) + "\n")


@pytest.mark.parametrize("name", [*KERNELS, "K over a cluster", "scales of 128", "nine products"])
def test_right_kernels_multiply_no_bytes_twice(name):
    assert warned(name, compiled(name).ptx) == set()


def warned(name: str, ptx: str) -> set[str]:
    """The categories of what is warned of."""
    bundle = Bundle(compiled(name).manifest, ptx, b"")
    report = open_device("emulator").launch(bundle, make_tensors(bundle.manifest, 0), 0)
    return {each.category for each in report.warnings}
