"""Scaled products in graphs: torch's forms that are regions, and why others are left."""

import pytest
import torch
import torch.nn.functional as F
from graphs import draw, graph_of, regions

if not hasattr(F, "scaled_mm"):
    pytest.skip("torch 2.9 has no scaled_mm with recipes", allow_module_level=True)

from torch.nn.functional import ScalingType, SwizzleType

from tilewright.compiler.inductor.check import check_region
from tilewright.compiler.inductor.graph_pass import take_regions
from tilewright.compiler.inductor.operator import region_operator
from tilewright.compiler.inductor.settings import Settings
from tilewright.compiler.inductor.source import prepare
from tilewright.dialects.errors import CompileError
from tilewright.scales import dequantize, quantize, to_blocked

M, N, K = 40, 72, 256
TENSOR, ROW = ScalingType.TensorWise, ScalingType.RowWise
FINE, FINER, COARSE = (getattr(ScalingType, f"BlockWise1x{e}") for e in (32, 16, 128))
ATOMS, PLAIN = SwizzleType.SWIZZLE_32_4_4, SwizzleType.NO_SWIZZLE
BF16 = {"output_dtype": torch.bfloat16}


def blocks_of(form):
    """Both operands in a format, with scales in atoms, and both in float64.

    Of mxfp4 torch wants as many scales as half of K has, so K is one for which that is the same.
    """
    k = K // 2 if form == "mxfp4" else K
    made = [quantize(draw(rows, k, dtype=torch.float32, seed=rows), form) for rows in (M, N)]
    given = [each.data for each in made] + [to_blocked(each.scales).flatten() for each in made]
    return given, [dequantize(each.data, each.scales, form) for each in made]


def narrow():
    """Both operands in e4m3, and both in float64."""
    made = [draw(rows, K, seed=rows).to(torch.float8_e4m3fn) for rows in (M, N)]
    return made, [each.double() for each in made]


def version_1(a, b, s, t):
    return F.relu(torch._scaled_mm(a, b.t(), s, t, out_dtype=torch.bfloat16, use_fast_accum=True))


def exactly(a, b, s, t):
    return F.relu(torch._scaled_mm(a, b.t(), s, t, out_dtype=torch.bfloat16))


def by_rows(a, b, s, t):
    return F.relu(F.scaled_mm(a, b.t(), s, ROW, t, ROW, use_fast_accum=True, **BF16))


def of_16_with_bias(a, b, s, t, u, v, bias):
    recipe = [FINER, TENSOR]
    swizzle = [ATOMS, PLAIN]
    return F.relu(
        F.scaled_mm(a, b.t(), [s, u], recipe, [t, v], recipe, swizzle, swizzle, bias=bias, **BF16)
    )


def of_32(a, b, s, t):
    return F.relu(F.scaled_mm(a, b.t(), s, FINE, t, FINE, ATOMS, ATOMS, **BF16))


def factors(*shapes):
    return [draw(*shape, dtype=torch.float32, seed=len(shape)).abs() + 0.5 for shape in shapes]


def examples(name):
    """A function, its inputs, and what it gives in float64."""
    if name in ("mxfp8", "mxfp4", "mxfp8 by version 1"):
        given, (a, b) = blocks_of(name.partition(" ")[0])
        return (version_1 if "version" in name else of_32), given, F.relu(a @ b.T)
    if name == "nvfp4":
        given, (a, b) = blocks_of("nvfp4")
        u, v = factors((1,), (1,))
        bias = draw(N)
        wanted = F.relu(a @ b.T * u.double() * v.double() + bias.double())
        return of_16_with_bias, [*given, u, v, bias], wanted
    given, (a, b) = narrow()
    s, t = factors((M, 1), (1, N)) if name == "rows" else factors((), ())
    function = {"rows": by_rows, "exact sums": exactly}[name]
    return function, [*given, s, t], F.relu(a @ b.T * s.double() * t.double())


@pytest.mark.parametrize(
    ("name", "chip"),
    [("mxfp8", "sm_100a"), ("mxfp8 by version 1", "sm_100a"), ("mxfp4", "sm_100a"),
     ("nvfp4", "sm_100a"), ("rows", "sm_90a"), ("exact sums", "sm_90a")],
)  # fmt: skip
def test_a_scaled_product_is_a_region_with_what_follows(name, chip):
    function, values, wanted = examples(name)
    module = graph_of(function, *values)
    (region,) = regions(function, *values)
    assert region.fused() == ["relu"]
    assert bool(prepare(region, chip).spec.sums) is (name == "exact sums")
    take_regions(module.graph, Settings(device="emulator", target=chip))
    module.recompile()
    assert [node.target for node in module.graph.nodes].count(region_operator) == 1
    size = float(wanted.square().mean().sqrt())
    torch.testing.assert_close(module(*values).double(), wanted, rtol=2e-2, atol=1e-2 * size)


def test_a_model_check_quantises_what_it_verifies():
    function, values, _ = examples("nvfp4")
    (region,) = regions(function, *values)
    checked = check_region(region, prepare(region, "sm_100a"), 24)
    assert checked.right and checked.sizes == f"24x{N}x{K}"


def test_hopper_has_no_mma_with_scales_of_blocks():
    function, values, _ = examples("mxfp8")
    (region,) = regions(function, *values)
    rule = "scales of blocks are for chips whose MMAs take them, as sm_100a, got sm_90a"
    with pytest.raises(CompileError, match=rule):
        prepare(region, "sm_90a")


def scales_of_128(a, b, s, t):
    return F.scaled_mm(a, b.t(), s, COARSE, t, COARSE, **BF16)


LEFT = {
    "scale_a has the recipe [4], which is left to torch": (
        scales_of_128, lambda: [*narrow()[0], *factors((K // 128, M), (K // 128, N))]
    ),
    "sums of integers are left to torch": (
        torch._int_mm, lambda: [torch.ones(32, 32, dtype=torch.int8)] * 2
    ),
    "scale_a is torch.float32 [40], neither one f32 nor one a row or column": (
        None, lambda: [*narrow()[0], *factors((M,), (1, N))]
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", LEFT)
def test_another_form_is_left_with_the_reason(reason, rows):
    function, values = LEFT[reason]
    values = values()
    if function is None:  # torch's own check refuses it: the node alone is made
        module = graph_of(by_rows, *values[:2], *factors((M, 1), (1, N)))
        scale = next(node for node in module.graph.nodes if node.name.startswith("s_"))
        scale.meta["val"] = scale.meta["val"].flatten()
    else:
        values = [values[0], values[1]] if function is torch._int_mm else values
        if function is scales_of_128:
            values = [*values[:2], *(each.T for each in values[2:])]
        module = graph_of(function, *values)
    take_regions(module.graph, Settings(device="emulator", target="sm_90a"))
    assert [(row.taken, row.reason) for row in rows] == [(False, reason)]
