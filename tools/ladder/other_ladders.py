"""Further published series of Blackwell kernels, as pipelines.

Each rung names what is new in it, its passes here, and TFLOP/s where its author gives them. Where
an author tries several tiles, stages or orders and shows the fastest, so does `Rung.choices`, and a
prediction is of the fastest. No figure of the estimate was fitted to these times.

jax: docs/pallas/gpu/blackwell_matmul.md and tests/pallas/mgpu_examples_test.py, whose shared
memory leaves out some of what they try. tilus: examples/blackwell_matmul and the plots of its
tutorial. ThunderKittens: kernels/gemm/educational_b200, whose kernels ask for all of shared memory,
so a multiprocessor has one CTA. Those of tilus never relinquish the right to allocate tensor
memory, so a CTA waits until the one before it on its multiprocessor has ended. TIRx: the chapters
on GEMMs of the book; its kernels take all of tensor memory, and have one accumulator. cutlass:
examples/python/CuTeDSL, the tutorial of GEMMs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .timed_kernels import Timed

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Ladder:
    """Where kernels stand, the shape they were timed at, and fields of their spec; `columns`,
    `clock` and `inputs` as in `Timed`."""

    name: str
    url: str
    how: str
    shape: Shape
    spec: dict[str, Any] = field(hash=False)
    columns: int | None = None
    clock: float = 0
    inputs: str = "random"


@dataclass(frozen=True)
class Rung:
    """A published kernel: its name, what is new in it, the pipelines that its author tries, and
    TFLOP/s of the fastest, 0 where there are none; `joined` as in `Timed`."""

    ladder: Ladder
    name: str
    what: str
    choices: tuple[str, ...]
    tflops: float = 0
    described: bool = True
    joined: bool = False
    more: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def spec(self) -> dict[str, Any]:
        """Fields of its spec beside its sizes."""
        return self.ladder.spec | self.more

    @property
    def published_us(self) -> float:
        """Microseconds at the ladder's shape, 0 where they are not known."""
        m, n, k = self.ladder.shape
        return 2 * m * n * k / self.tflops / 1e6 if self.tflops else 0

    def fastest(self) -> tuple[str, float]:
        """The pipeline that is predicted to be the fastest, and its microseconds; the first and 0
        where the estimate describes none."""
        if not self.described:
            return self.choices[0], 0
        return min(((each, self._predicted_us(each)) for each in self.choices), key=lambda e: e[1])

    def _predicted_us(self, passes: str) -> float:
        from .speeds import predicted_as_timed

        at, spec = self.ladder, self.spec
        types = at.inputs, spec["a_dtype"], spec["c_dtype"]
        timed = Timed(passes, at.url, at.shape, at.columns, *types, at.clock, self.joined)
        found = predicted_as_timed(timed, "sm_100a")
        assert found is not None  # `described`
        return found.total_us


def _half(**more: Any) -> dict[str, Any]:
    return {"a_dtype": "f16", "b_dtype": "f16", "c_dtype": "f16", **more}


def _brain(**more: Any) -> dict[str, Any]:
    return {"a_dtype": "bf16", "b_dtype": "bf16", "c_dtype": "bf16", **more}


JAX = Ladder(
    "JAX, Pallas",
    "https://docs.jax.dev/en/latest/pallas/gpu/blackwell_matmul.html",
    "f16, normally distributed, of the peak 2250 TFLOP/s; tile, stages and order the best of a few",
    (4096, 8192, 4096),
    _half(b_major="n"),
)
TILUS_PEAK_GHZ = 1599.8 / 0.966 / 8192 / 148 * 1e3
"""cuBLAS's TFLOP/s there and its share of tensor cores' cycles, of 148 multiprocessors."""
TILUS = Ladder(
    "Tilus",
    "https://nvidia.github.io/tilus/tutorials/matmul-blackwell",
    "f16, under Nsight Compute, which holds a clock: 1.37 GHz by its figures of cuBLAS; tile,"
    " stages and order the best of a few",
    (8192, 8192, 8192),
    _half(),
    columns=512,
    clock=TILUS_PEAK_GHZ,
)
KITTENS = Ladder(
    "ThunderKittens",
    "https://github.com/HazyResearch/ThunderKittens, educational_b200",
    "bf16, one launch by the host's clock, so short kernels are timed too long",
    (4096, 4096, 4096),
    _brain(b_major="n"),
    columns=512,
)
TIRX = Ladder(
    "TIRx",
    "https://mlc.ai/modern-gpu-programming-for-mlsys, chapter_gemm_async and chapter_gemm_advanced",
    "f16, a thousand runs at a clock that is held; which one is not said",
    (4096, 4096, 4096),
    _half(),
    columns=512,
)
CUTE = Ladder(
    "CuTe DSL",
    "https://github.com/NVIDIA/cutlass, examples of the CuTe DSL, tutorial_gemm",
    "f16 and nvfp4; no times",
    (8192, 8192, 8192),
    _half(),
)

CUTLASS = Ladder(
    "CUTLASS",
    "https://github.com/NVIDIA/cutlass, examples 70 to 92 for sm_100",
    "by types and tiles of each example; no times",
    (8192, 8192, 8192),
    _half(),
)
DEEP = Ladder(
    "DeepGEMM",
    "https://github.com/deepseek-ai/DeepGEMM, kernels of sm_100",
    "tiles are chosen by shape there, these are some; no times",
    (8192, 8192, 8192),
    _brain(),
)

_COPIED = "tma-insertion,swizzle-selection"
_PAIR, _ROLES = "clustering{shape=2x1 pair=true}", "warp-specialization"


def _pipeline(tile: str, *passes: str) -> str:
    return ",".join((f"tiling{{tile={tile}}}", *filter(None, passes)))


def _staged(columns: int, buffers: int) -> str:
    return f"epilogue-staging{{columns={columns} buffers={buffers}}}"


def _ring(stages: int) -> str:
    return f"pipelining{{stages={stages}}}"


def _tiles(scheduler: str, order: str = "") -> str:
    return f"persistence{{scheduler={scheduler}{order and f' order={order}'}}}"


def _jax() -> Iterator[Rung]:
    narrow, wide = "128x128x64 order=n", "128x256x64 order=n"
    pieces, pair = _staged(64, 2), (_staged(64, 2), _PAIR, _ring(6))
    basic = [_pipeline(narrow, _COPIED, pieces, _ring(stages)) for stages in (4, 6)]
    roles = [f"{each},{_ROLES}" for each in basic]
    tiled = _pipeline(wide, _COPIED, pieces, _ring(4), _ROLES)
    lone = _pipeline(wide, _COPIED, *pair, _ROLES)
    tail = [_pipeline("128x256x64", _COPIED, *pair, role) for role in ("", _ROLES)]
    grid = [f"grouped group={width}" for width in (4, 12, 16)]
    yield Rung(JAX, "0", "tiles by TMA, several stages", tuple(basic), 0.3762 * 2250)
    yield Rung(JAX, "1", "warps of their own for TMA and MMA", tuple(roles), 0.4547 * 2250)
    yield Rung(JAX, "2", "C stored in pieces", (*roles, tiled), 0.5582 * 2250)
    yield Rung(JAX, "3", "2-CTA MMA", (lone,), 0.5941 * 2250)
    lasting = f"{tail[0]},{_tiles('static', 'n')}"
    yield Rung(JAX, "4", "persistent", (lasting,), 0.6146 * 2250, joined=True)
    yield Rung(
        JAX, "5", "warps of their own to store", (f"{tail[1]},{_tiles('static', 'n')}",), 1426.05
    )
    orders = tuple(f"{tail[1]},{_tiles('static', each)}" for each in grid)
    yield Rung(JAX, "6", "tiles in groups", orders, 0.6944 * 2250)


def _tilus() -> Iterator[Rung]:
    sizes = [(n, k) for n in (64, 128, 256) for k in (16, 32, 64)]
    rings = [(n, k, stages) for n, k in sizes for stages in (2, 3, 4)]
    pieces = _staged(16, 1)
    threads = _pipeline("128x256x64", "copy-insertion,swizzle-selection")
    tma = [_pipeline(f"128x{n}x{k}", _COPIED, pieces) for n, k in sizes]
    piped = [_pipeline(f"128x{n}x{k}", _COPIED, pieces, _ring(s)) for n, k, s in rings]
    grouped = [
        _pipeline(f"128x{n}x{k} order=grouped group=8", _COPIED, pieces, _ring(s), _ROLES)
        for n, k, s in rings
    ]
    stay = [
        _pipeline(f"128x{n}x{k}", _COPIED, pieces, _ring(s), _ROLES, _tiles("clc", "grouped"))
        for n, k in ((128, 32), (128, 64), (256, 32), (256, 64))
        for s in (3, 4)
    ]
    pair = [
        _pipeline("128x256x64", _COPIED, pieces, _PAIR, _ring(5), _ROLES, _tiles("clc", order))
        for order in ("grouped", "grouped group=16")
    ]
    yield Rung(TILUS, "v0", "tcgen05, tiles by threads", (threads,), 490.9, described=False)
    yield Rung(TILUS, "v1", "TMA", tuple(tma), 454.3)
    yield Rung(TILUS, "v2", "several stages", tuple(piped), 1103.2)
    yield Rung(TILUS, "v3", "warp roles", tuple(f"{each},{_ROLES}" for each in piped), 1351.1)
    yield Rung(TILUS, "v4", "tiles in groups", tuple(grouped), 1416.4)
    yield Rung(TILUS, "v5", "cluster launch control, two accumulators", tuple(stay), 1506.3)
    yield Rung(TILUS, "v6", "2-CTA MMA", tuple(pair), 1610.2)


def _kittens() -> Iterator[Rung]:
    naive = _pipeline("32x32x1 mma=fma operands=global")
    mma, whole = "mma=mma.sync warps=1x1", _staged(64, 2)
    f32 = dict.fromkeys(("a_dtype", "b_dtype", "c_dtype"), "f32")
    roles, paired = (_ring(3), _ROLES), (_PAIR, _ring(4), _ROLES)
    own = [
        (naive, "a loop, f32", 6, f32),
        (naive, "a loop", 6, {}),
        (_pipeline("32x32x32 mma=fma"), "shared memory", 11, {}),
        (_pipeline(f"32x32x32 {mma}"), "mma.sync", 26, {}),
        (_pipeline(f"64x64x32 {mma}", _COPIED), "TMA", 55, {}),
    ]
    for number, (passes, what, tflops, more) in enumerate(own, 1):
        yield Rung(KITTENS, f"{number}", what, (passes,), tflops, described=False, more=more)
    tcgen05 = [
        (_pipeline("128x128x64", _COPIED, whole), "tcgen05.mma", 293),
        (_pipeline("128x128x64", _COPIED, whole, *roles), "three stages, roles", 731),
        (_pipeline("128x256x64", _COPIED, _staged(64, 4), *roles), "C in pieces", 1050),
        (_pipeline("256x256x64", _COPIED, _staged(32, 2), *paired), "pairs, 512 rows", 1285),
    ]
    for number, (passes, what, tflops) in enumerate(tcgen05, 6):
        yield Rung(KITTENS, f"{number}", what, (passes,), tflops)
    full = _pipeline("256x256x64", _COPIED, _staged(32, 2), *paired)
    full = f"{full},{_tiles('clc', 'grouped group=4')}"
    yield Rung(KITTENS, "bf16_b200", "persistent", (full,), 1540, more={"b_major": "k"})


def _tirx() -> Iterator[Rung]:
    narrow, whole, all_tiles = "128x128x64", _staged(64, 2), _tiles("static", "grouped")
    pair, tail = (_PAIR, _ring(4), _ROLES, all_tiles), "128x256x64"
    for name, what, us, passes in (
        ("4", "TMA", 490, _pipeline(narrow, _COPIED, whole)),
        (
            "7",
            "roles, persistent",
            230,
            _pipeline(narrow, _COPIED, whole, _ring(2), _ROLES, all_tiles),
        ),
        ("8", "2-CTA MMA", 104, _pipeline(tail, _COPIED, _staged(64, 2), *pair)),
        ("9", "512 rows a pair", 94, _pipeline("256x256x64", _COPIED, _staged(32, 2), *pair)),
    ):
        yield Rung(TIRX, name, what, (passes,), 2 * 4096**3 / us / 1e6)


def _cute() -> Iterator[Rung]:
    pieces, ring = _staged(32, 2), (_PAIR, _ring(6), _ROLES)
    stays = _pipeline("128x256x64", _COPIED, pieces, *ring)
    clc = f"{stays},persistence{{scheduler=clc depth=1}}"
    late = "lower-to-nvvm{pdl=false}"  # dependent launch is a rung of its own
    four = {"a_dtype": "nvfp4", "b_dtype": "nvfp4"}
    rungs = [
        ("fp16_gemm_0", "four stages", _pipeline("128x256x64", _COPIED, _ring(4), late), {}),
        ("fp16_gemm_1", "2-CTA MMA", _pipeline("128x256x64", _COPIED, _PAIR, _ring(7), late), {}),
        ("fp16_gemm_2", "roles, C by TMA", f"{stays},{late}", {}),
        ("fp16_gemm_3", "persistent", f"{stays},{_tiles('static')},{late}", {}),
        ("fp16_gemm_3_1", "cluster launch control", f"{clc},{late}", {}),
        ("fp16_gemm_6", "dependent launch", f"{clc},lower-to-nvvm{{pdl=true}}", {}),
        ("nvfp4_gemm_0", "nvfp4", _pipeline("128x256x256", _COPIED, _ring(3)), four),
        ("nvfp4_gemm_1", "2-CTA MMA", _pipeline("128x256x256", _COPIED, _PAIR, _ring(4)), four),
    ]
    for name, what, passes, more in rungs:
        yield Rung(CUTE, name, what, (passes,), described=False, more=more)


def _scaled(a: str, b: str = "", c: str = "bf16", **more: Any) -> dict[str, Any]:
    return {"a_dtype": a, "b_dtype": b or a, "c_dtype": c, **more}


def _libraries() -> Iterator[Rung]:
    """Kernels of a library, each by itself."""
    pieces, four = _staged(32, 2), "clustering{shape=2x4 pair=true}"
    many = "clustering{shape=2x2 pair=true}"
    either = "clustering{shape=4x4 pair=true fallback=2x1}"
    clc, static, deep = (
        f"{_ROLES},{_tiles(*each)}"
        for each in (("clc",), ("static",), ("static", "grouped group=16"))
    )
    shared = {"a_scales": "1x128", "b_scales": "128x128"}
    for ladder, name, what, tile, passes, more in (
        (CUTLASS, "70", "2-CTA MMA", "128x128x64", (pieces, many, _ring(5), clc), {}),
        (
            *(CUTLASS, "72a", "nvfp4, clusters of 2x4", "128x256x256"),
            *((pieces, four, _ring(3), clc), _scaled("nvfp4")),
        ),
        (
            *(CUTLASS, "72b", "C in nvfp4 with its scales", "128x128x256"),
            *((pieces, _ring(4), clc), _scaled("nvfp4", c="nvfp4")),
        ),
        (
            *(CUTLASS, "72c", "mxfp8 by mxfp4", "128x256x128"),
            *((pieces, four, _ring(3), clc), _scaled("mxfp8", "mxfp4")),
        ),
        (
            *(CUTLASS, "73", "clusters of 4x4, and of 2x1 where they find no room", "128x128x64"),
            *((pieces, either, _ring(5), static), _scaled("f16", c="f32")),
        ),
        (
            *(CUTLASS, "75", "groups of rows, e4m3", "128x256x128"),
            *((pieces, _PAIR, _ring(4), static), _scaled("e4m3", c="f16", groups=3)),
        ),
        (
            *(CUTLASS, "75, block scales", "groups of rows, nvfp4", "128x256x256"),
            *((pieces, _PAIR, _ring(3), static), _scaled("nvfp4", c="f16", groups=3)),
        ),
        (
            *(CUTLASS, "81", "scales in f32 of 128 elements, 2-CTA MMA", "128x128x128"),
            *((pieces, _PAIR, _ring(4), static), _scaled("e4m3", **shared)),
        ),
        (
            *(CUTLASS, "92", "few rows a group, nvfp4", "128x64x256 swap=true"),
            *((_ring(5), static), _scaled("nvfp4", c="f16", groups=3)),
        ),
        (DEEP, "bf16", "224 columns", "128x224x64", (pieces, _PAIR, _ring(6), deep), {}),
        (DEEP, "bf16, few rows", "A and B exchanged", "128x96x64 swap=true", (_PAIR, deep), {}),
        (
            *(DEEP, "fp8", "powers of two for 128 elements", "128x224x128"),
            *((pieces, _PAIR, _ring(5), deep), _scaled("mxfp8_1x128", "mxfp8_128x128")),
        ),
        (
            *(DEEP, "fp8, groups", "A and B exchanged", "128x96x128 swap=true"),
            *((_PAIR, _ring(6), static), _scaled("mxfp8", groups=3)),
        ),
    ):
        text = _pipeline(tile, _COPIED, *passes)
        yield Rung(ladder, name, what, (text,), described=False, more=more)


def other_rungs() -> list[Rung]:
    """All of them, ladder by ladder."""
    return [*_jax(), *_tilus(), *_kittens(), *_tirx(), *_cute(), *_libraries()]
