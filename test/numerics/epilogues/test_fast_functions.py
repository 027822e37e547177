"""`math=fast`: an element of C is within half a unit in its last place before it is rounded."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch.nn.functional import gelu, silu

import tilewright
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.importers.traced_function import TensorLike
from tilewright.compiler.spec import MatmulSpec
from tilewright.passes.lowering.epilogue.late import LATE_MEETING
from tilewright.runtime.emulator.instructions.values import approximations

SIDE = 256
"""Columns of a matrix that holds numbers of 16 bits, each once."""
SMALL = {"pipeline": "tiling{tile=64x64x64}"}
"""Little code is compiled in a tenth of the time."""
PERMUTES = {
    "pipeline": "tiling{tile=64x64x64},tma-insertion,swizzle-selection,"
    "epilogue-staging{columns=32 buffers=2},pipelining{stages=2},warp-specialization,"
    "persistence{ctas=3},ping-pong"
}
"""With a main loop that hides a second approximate function."""
FORMS = {
    "hopper": {"target": "sm_90a", **SMALL},
    "hopper shared": {"target": "sm_90a", "pipeline": "tiling{tile=256x72x64}"},
    "hopper in turns": {"target": "sm_90a", **PERMUTES},
    "blackwell": {"target": "sm_100a", **SMALL},
}
TYPES = {torch.bfloat16: (8, -126), torch.float16: (11, -14)}
"""Significant bits, and the exponent of the smallest normal number."""


def functions(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Those that have a fast form, of f32, in f32."""
    return gelu(x), gelu(x, approximate="tanh"), silu(x), torch.sigmoid(x), torch.tanh(x)


def slopes(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Those of both GELUs, as torch decomposes their gradients."""
    normal = 0.5 * (1 + torch.erf(x * 0.5**0.5))
    density = (2 * torch.pi) ** -0.5 * torch.exp(x * x * -0.5)
    u = (2 / torch.pi) ** 0.5 * (x + 0.044715 * (x * x * x))
    tanh = torch.tanh(u)
    inner = (2 / torch.pi) ** 0.5 * (1 + 3 * 0.044715 * (x * x))
    return normal + x * density, 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner


def exactly(x: torch.Tensor) -> list[torch.Tensor]:
    """The same in float64 by formulas in which nothing cancels."""
    slope = (2 / torch.pi) ** 0.5
    u = 2 * slope * (x + 0.044715 * x**3)
    normal = torch.exp(torch.special.log_ndtr(x))
    return [x * normal, x * torch.sigmoid(u), x * torch.sigmoid(x), torch.sigmoid(x), x.tanh()]


def unit(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """One in the last place of the type at each value."""
    bits, smallest = TYPES[dtype]
    exponent = torch.frexp(values)[1] - 1
    return torch.ldexp(torch.ones_like(values), exponent.clamp(min=smallest) - bits + 1)


def computed(dtype: torch.dtype, x: torch.Tensor, **how: Any) -> tuple[torch.Tensor, ...]:
    """What a kernel makes of each x, as the sum of itself and a product that is 0."""
    zeros = torch.zeros(SIDE, 128, dtype=torch.bfloat16)
    rows = zeros[: len(x)]

    def epilogue(acc: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(each.to(dtype) for each in functions(acc + x))

    return tilewright.matmul(rows, zeros, out_dtype=dtype, epilogue=epilogue, operands=[x], **how)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "dtype, form, every, offset",
    [
        (torch.bfloat16, "hopper shared", 1, 1.0),
        (torch.bfloat16, "hopper in turns", 1, 1.0),
        (torch.bfloat16, "blackwell", 1, 1.0),
        (torch.float16, "hopper shared", 4, 1.0),
        (torch.float16, "hopper in turns", 4, 1.0),
        (torch.float16, "blackwell", 4, -1.0),
    ],
    ids=["bf16", "bf16 in turns", "bf16 packed", "f16 together", "f16 in turns", "f16"],
)
def test_every_function_of_every_number_is_within_a_unit_however_the_chip_approximates(
    dtype: torch.dtype, form: str, every: int, offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of bf16 every number, of f16 one in four; results of approximate instructions lie at an end
    of what the PTX ISA allows."""
    monkeypatch.setattr(approximations, "offset", offset)
    patterns = torch.arange(0, 2**16, every, dtype=torch.int32).to(torch.int16)
    x = patterns.view(dtype).reshape(-1, SIDE)
    finite = x.isfinite()
    wide = torch.where(finite, x, 0).double()
    for got, wanted in zip(computed(dtype, x, **FORMS[form]), exactly(wide), strict=True):
        error = (got.double() - wanted).abs()[finite] / unit(wanted, dtype)[finite]
        assert error.max() <= 1, x[finite][error.argmax()]
        assert got[x.isnan()].isnan().all()
        assert got[x == torch.inf].double().tolist() in ([torch.inf], [1.0])
        assert got[x == -torch.inf].isnan().all() or got[x == -torch.inf].abs() <= 1


@pytest.mark.sweep(2)
@pytest.mark.array(form=list(FORMS), dtype=[torch.bfloat16, torch.float16], offset=[1.0, -1.0])
def test_slopes_of_gelu_are_within_a_unit_also_about_their_zero(
    dtype: torch.dtype, offset: float, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every bf16 number whose square is one; about the zero of f32, too."""
    monkeypatch.setattr(approximations, "offset", offset)
    x = torch.arange(0, 2**16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).float()
    x = x[x.abs() < 1e9]
    root = torch.tensor(-0.75179154, dtype=torch.float32).view(torch.int32)
    numbers = (root + torch.arange(-64, 64, dtype=torch.int32)).view(torch.float32)
    near = torch.cat([torch.linspace(-0.76, -0.745, 384), numbers])
    x = torch.cat([near, x]) if dtype == torch.bfloat16 else x
    x = x[: len(x) // SIDE * SIDE].reshape(-1, SIDE)
    wide = x.double()
    u = 2 * (2 / torch.pi) ** 0.5 * (wide + 0.044715 * wide**3)
    inner = 2 * (2 / torch.pi) ** 0.5 * (1 + 3 * 0.044715 * wide * wide)
    normal = torch.exp(torch.special.log_ndtr(wide))
    wanted = [
        normal + wide * (2 * torch.pi) ** -0.5 * torch.exp(wide * wide * -0.5),
        u.sigmoid() + wide * u.sigmoid() * (-u).sigmoid() * inner,
    ]
    zeros = torch.zeros(SIDE, 128, dtype=torch.bfloat16)
    how = {"out_dtype": dtype, "operands": [x], **FORMS[form]}

    def epilogue(acc: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(each.to(dtype) for each in slopes(acc + x))

    got = tilewright.matmul(zeros[: len(x)], zeros, epilogue=epilogue, **how)
    allowed = [unit(wanted[0], dtype), unit(wanted[1], dtype) + 2**-21]
    for each, right, most in zip(got, wanted, allowed, strict=True):
        error = (each.double() - right).abs() / most
        assert error.max() <= 1, (x.flatten()[error.argmax()], error.max())


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "kind",
    [
        "pipelining{stages=2},warp-specialization,persistence,ping-pong",
        "pipelining{stages=2},warp-specialization",
    ],
    ids=["in turns", "together"],
)
def test_functions_of_pieces_whose_numbers_come_behind_a_meeting(kind: str) -> None:
    """Of a staged store each piece begins at a meeting of its threads, on Hopper."""
    staging = "tma-insertion,swizzle-selection,epilogue-staging{columns=32 buffers=2}"
    tile = "64x64x64" if "ping-pong" in kind else "128x64x64"
    a, b = torch.randn(2, 200, 128).bfloat16()
    sums, x = a.double() @ b.double().T, torch.randn(200, 200).bfloat16()

    def epilogue(acc: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return gelu(acc) + silu(acc) * slopes(x.float())[0]

    how = {"target": "sm_90a", "pipeline": f"tiling{{tile={tile}}},{staging},{kind}"}
    got = tilewright.matmul(a, b, epilogue=epilogue, operands=[x], **how)
    wanted = epilogue(sums, x.double())
    assert ((got.double() - wanted).abs() <= 2**-7 * sums.abs() + 1e-2).all()


def test_numbers_are_late_where_functions_are_computed_and_not_hidden() -> None:
    """GELU in turns is left in its order where the other's main loop is long enough for it."""

    def is_late(
        function: Any,
        k: int,
        tail: str = ",persistence,ping-pong",
        tile: str = "64x64",
        by: str = "",
    ) -> bool:
        spec = MatmulSpec(256, 256, k)
        spec, made, *_ = import_epilogue(spec, Frame.of([256, 256], 0), function, [])
        staging = f"tma-insertion,swizzle-selection,epilogue-staging{{columns=64 buffers=2{by}}}"
        roles = f"pipelining{{stages=2}},warp-specialization{tail}"
        how = {"pipeline": f"tiling{{tile={tile}x64}},{staging},{roles}", "target": "sm_90a"}
        ptx = compile_matmul(LinalgText(spec.mlir_text(made), "matmul"), until="ptx", **how).ptx
        return LATE_MEETING in ptx

    assert is_late(silu, 2048) and is_late(gelu, 1024) and is_late(gelu, 2048, tail="")
    assert is_late(silu, 128, "", "256x128", " by=warpgroup")
    assert not is_late(gelu, 2048)
    assert not is_late(torch.relu, 256)


def test_approximate_functions_of_an_element() -> None:
    """GELU's slope has no reciprocal but in turns, that of its tanh form one. A density of another
    width is no slope of GELU, and erf is then as exact as any. SiLU has none where
    warpgroups share a tile and nothing is added to it."""

    def wider(acc: torch.Tensor) -> torch.Tensor:
        density = (2 * torch.pi) ** -0.5 * torch.exp(acc * acc * -0.6)
        return 0.5 * (1 + torch.erf(acc * 0.5**0.5)) + acc * density

    def ptx_of(function: Any, form: str) -> str:
        spec, made, *_ = import_epilogue(
            MatmulSpec(64, 64, 128), Frame.of([64, 64], 0), function, []
        )
        source = LinalgText(spec.mlir_text(made), "matmul")
        return compile_matmul(source, until="ptx", **FORMS[form]).ptx

    of_gelu, of_tanh = (lambda acc, at=at: slopes(acc)[at] for at in (0, 1))
    made = [ptx_of(each, "hopper") for each in (of_gelu, of_tanh, wider)]
    made += [ptx_of(each, "hopper in turns") for each in (of_gelu, silu)]
    counts = [
        [len(re.findall(rf"\b{name}\.approx", ptx)) // 32 for name in ("ex2", "rcp")]
        for ptx in made
    ]
    assert counts == [[1, 0], [1, 1], [2, 1], [1, 1], [1, 1]]
    for function, form, expected in (
        (silu, "hopper shared", False),
        (silu, "hopper", True),
        (lambda acc: silu(acc) + 1, "hopper shared", True),
    ):
        assert ("rcp.approx" in ptx_of(function, form)) == expected


@pytest.mark.sweep(2)
@pytest.mark.array(
    1,
    factors=[(0.5, 0.5**0.5), (1.0, 0.5**0.5), (3.0, 1.5), (-0.5, 2.0), (9.0, 9.0), (0.5, 1e8)],
    form=["hopper", "hopper in turns"],
)
def test_gelus_of_other_factors_are_within_a_unit(
    factors: tuple[float, float], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the two parts of v · (1 + erf(u)) take none of them along."""
    outer, inner = factors
    monkeypatch.setattr(approximations, "offset", 1.0)
    x = torch.arange(0, 2**16, 8, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    x = x[x.isfinite() & (x.abs() < 1e30)][: 28 * SIDE].reshape(-1, SIDE)
    wide = x.double()
    wanted = outer * wide * 2 * torch.exp(torch.special.log_ndtr(2**0.5 * inner * wide))

    def epilogue(acc: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        v = acc + x
        return outer * v * (1 + torch.erf(inner * v))

    zeros = torch.zeros(SIDE, 128, dtype=torch.bfloat16)
    how = {"epilogue": epilogue, "operands": [x], **FORMS[form]}
    got = tilewright.matmul(zeros[: len(x)], zeros, **how)
    assert ((got.double() - wanted).abs() <= unit(wanted, torch.bfloat16)).all()


def test_shares_of_small_numbers_are_within_a_unit() -> None:
    """With a small factor, the coefficients of a fit would leave the range of f32."""
    numerator = 1e-25
    x = torch.linspace(-9, 9, 4 * SIDE).reshape(-1, SIDE)

    def epilogue(acc: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (torch.full_like(acc, numerator) / (1 + torch.exp(-(acc + x)))).bfloat16()

    zeros = torch.zeros(SIDE, 128, dtype=torch.bfloat16)
    how = {"epilogue": epilogue, "operands": [x], **FORMS["hopper shared"]}
    got, wanted = tilewright.matmul(zeros[: len(x)], zeros, **how), numerator * x.double().sigmoid()
    assert ((got.double() - wanted).abs() <= unit(wanted, torch.bfloat16)).all()


@pytest.mark.sweep(2)
@pytest.mark.array(1, scale=[1e-6, 1e-3, 700.0, 1e6], form=["hopper", "hopper in turns"])
def test_functions_of_small_and_large_scales_are_within_a_unit(form: str, scale: float) -> None:
    """Powers of a scale that a fit's coefficients take along would leave the range of f32."""
    x = torch.linspace(-3, 3, 2 * SIDE).reshape(-1, SIDE) / scale

    def made(x: torch.Tensor, normal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        density = scale * torch.pi**-0.5 * torch.exp(x * x * -(scale**2))
        return normal, normal + x * density

    def epilogue(acc: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        v = acc + x
        return tuple(each.half() for each in made(v, 0.5 * (1 + torch.erf(scale * v))))

    zeros = torch.zeros(SIDE, 128, dtype=torch.bfloat16)
    how = {"out_dtype": torch.float16, "operands": [x], **FORMS[form]}
    got = tilewright.matmul(zeros[: len(x)], zeros, epilogue=epilogue, **how)
    wide = x.double()
    wanted = made(wide, torch.exp(torch.special.log_ndtr(2**0.5 * scale * wide)))
    for each, right in zip(got, wanted, strict=True):
        assert ((each.double() - right).abs() <= unit(right, torch.float16)).all()


def test_exact_functions_of_16_bits_are_those_of_float32() -> None:
    """More of them are rounded as the exact value is; nothing is approximated."""
    x = torch.linspace(-1, 6, 32 * SIDE).reshape(-1, SIDE).bfloat16()
    exact = computed(torch.bfloat16, x, math="exact", **FORMS["hopper"])
    for got, wanted in zip(exact, functions(x.float()), strict=True):
        assert ((got.float() - wanted).abs() <= 0.502 * unit(wanted, torch.bfloat16)).all()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "silu", "bias"])
def test_two_elements_go_together_where_the_chip_takes_two(name: str) -> None:
    """On sm_100a no f32 is multiplied or added by itself."""
    makes = {
        "gelu": lambda acc, bias: gelu(acc + bias),
        "gelu_tanh": lambda acc, bias: gelu(acc + bias, approximate="tanh"),
        "silu": lambda acc, bias: silu(acc + bias),
        "bias": lambda acc, bias: acc + bias,
    }
    spec, bias = MatmulSpec(128, 64, 64), TensorLike((64,), torch.bfloat16)
    spec, made, *_ = import_epilogue(spec, Frame.of([128, 64], 0), makes[name], [bias])
    source = LinalgText(spec.mlir_text(made), "matmul")
    one, two = (
        re.findall(r"(?:add|mul|fma)\.rn\.f32(?:x2)?\b", ptx_for(source, target))
        for target in ("sm_90a", "sm_100a")
    )
    assert one and not any(each.endswith("x2") for each in one)
    assert two and all(each.endswith("x2") for each in two)


def ptx_for(source: LinalgText, target: str) -> str:
    """PTX of a kernel of one tile, its store staged."""
    text = (
        "tiling{tile=128x64x64},tma-insertion,swizzle-selection,epilogue-staging{vectors=ahead},"
        "pipelining{stages=2},warp-specialization"
    )
    return compile_matmul(source, target=target, pipeline=text, until="ptx").ptx
