"""A product that adds the same bytes of A and B to the same sums twice is told of."""

import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from ptx_faults.kernels import compiled, verdict

from tilewright.runtime.bundles.bundle import Bundle
from tilewright.runtime.emulator.checks.boxes import BoxRules
from tilewright.runtime.emulator.copies.box_copy import Box
from tilewright.runtime.emulator.machine.swizzle import NONE
from tilewright.runtime.emulator.tensor.spans import Claim, Span
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


BOX = Box(NONE, tensor=0, line=1, has_nan=False)


class Place(NamedTuple):
    """What a descriptor says of where an operand lies."""

    start: int


@dataclass(eq=False)
class Cta:
    """One that has shared memory and never exits."""

    shared: Any

    def at_exit(self, check: Any) -> None:
        """Forget it."""


SUMS = tuple(f"%sums0_{number}" for number in range(16))


def again_behind(lines: list[str], found: list[int], before: str) -> str:
    """Every product of a step along K once more, as sums that go on, behind other instructions."""
    whole = re.sub(
        r"(%rd\d+, %rd\d+, )%p\d+", r"\1%again", "\n".join(lines[found[0] : found[-1] + 1])
    )
    ends = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
    begins = ".reg .pred %again;\nsetp.eq.u32 %again, 0, 0;\nwgmma.fence.sync.aligned;"
    made = [f"{lines[found[-1]]}\n{ends}\n{before}\n{begins}\n{whole}"]
    return "\n".join([*lines[: found[-1]], *made, *lines[found[-1] + 1 :]]) + "\n"


@pytest.mark.parametrize("seed", range(4))
def test_sums_that_begin_anew_with_zeros_may_have_the_same_products(seed):
    """Triton and NVCC leave scale-d alone and move zeros to the registers of D."""
    lines, found = products("one slot")
    zeros = "\n".join(f"mov.b32 {each}, 0;" for each in SUMS)
    assert warned("one slot", again_behind(lines, found, zeros), seed) == set()
    assert warned("one slot", again_behind(lines, found, ""), seed) == {"repeated-product"}


@pytest.mark.parametrize(
    ("stored", "form", "told"),
    [
        (None, 1, True),
        (None, 2, False),
        (Span(32, 64, 8, 9), 1, False),
        (Span(32, 64, 0, 8), 1, True),
    ],
)
def test_sums_in_tensor_memory_that_threads_store_or_other_scales_multiply(stored, form, told):
    warnings: list[str] = []
    launch = SimpleNamespace(warn=lambda category, _: warnings.append(category))
    shared = SimpleNamespace(data=bytes(4096), watch=lambda _: None)
    cta = cast(Any, Cta(shared))
    rules, sums = BoxRules(cast(Any, launch)), Span(0, 128, 8, 40)
    for first in (0, 256):
        rules.box_written(cta, slice(first, first + 128), lambda: BOX)
    operands = Place(0), Place(2048)
    rules.product_issued(cta, 1, sums, False, operands, 1)
    if stored:
        rules.columns_used(cta, cast(Any, None), Claim(stored, "tcgen05.st", ()), True)
    rules.product_issued(cta, 2, sums, True, operands, form)
    assert warnings == ["repeated-product"] * told


@pytest.mark.parametrize("name", [*KERNELS, "K over a cluster", "scales of 128", "nine products"])
def test_right_kernels_multiply_no_bytes_twice(name):
    assert warned(name, compiled(name).ptx) == set()


def warned(name: str, ptx: str, seed: int = 0) -> set[str]:
    """The categories of what is warned of."""
    bundle = Bundle(compiled(name).manifest, ptx, b"")
    report = open_device("emulator").launch(bundle, make_tensors(bundle.manifest, 0), seed)
    return {each.category for each in report.warnings}
