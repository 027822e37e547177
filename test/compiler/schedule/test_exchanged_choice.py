"""Which products whose threads add are multiplied with A and B exchanged."""

import pytest

from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.search.candidates import ADDED_ROWS, sides
from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
from tilewright.compiler.spec import MatmulSpec

FORMS = [("1x128", "128x128"), ("1x128", "1x128"), ("128x128", "1x128")]


def spec_of(m, n, k, forms=FORMS[0], **more):
    scales = dict(zip(("a_scales", "b_scales"), forms, strict=True))
    return MatmulSpec(m, n, k, "e4m3", "e4m3", **scales, **more)


@pytest.mark.parametrize("forms", FORMS)
@pytest.mark.parametrize("m", [1, 8, ADDED_ROWS])
def test_few_rows_become_columns_of_an_mma(m, forms):
    spec = spec_of(m, 4096, 1024, forms)
    target = target_for(spec, "sm_90a")
    assert choose_schedule(spec, target).swap
    _, transposed = sides(Problem.of(spec, target))
    assert (transposed.row_scales, transposed.column_scales) == tuple(
        each == "1x128" for each in forms[::-1]
    )


@pytest.mark.parametrize("m", [24, 80])
def test_rows_of_bytes_become_columns_of_an_mma_of_integers(m):
    """Which has up to 32 columns by 8, and more by 16."""
    spec = MatmulSpec(m, 4096, 4096, "s8", "s8", "bf16", "s32")
    schedule = choose_schedule(spec, target_for(spec, "sm_90a"))
    n = schedule.tile[1]
    assert schedule.swap and (n <= 32 or n % 16 == 0)


@pytest.mark.parametrize(
    ("m", "more"), [(ADDED_ROWS + 1, {}), (8, {"further": ("f32",)}), (8, {"c_dtype": "f32"})]
)
def test_more_rows_and_other_outputs_are_not_exchanged(m, more):
    spec = spec_of(m, 4096, 1024, **more)
    assert len(sides(Problem.of(spec, target_for(spec, "sm_90a")))) == 1
