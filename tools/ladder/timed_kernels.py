"""The published kernels that were timed, as pipelines: tiles, stages and clusters.

Their texts name other tiles, and presets follow the texts. Where a speed stands beside a
prediction, the prediction is of what was timed. Options are read by the estimate alone, so a piece
of a staged store may be wider here than the pass takes.

learn-cuda: 02e_matmul_sm100/matmul_v1.cu to v6.cu, the functions matmul_v1a to matmul_v6, the same
in all versions since the first (9324ef1); random operands. modular: its kernel tests,
matmul_blackwell_iterative, 2_tensor_core.mojo to 8_clc_tmem_ping.mojo, the benchmarks at their
ends; A[m, k] = k and an identity. Kernels 2 to 5 take all of tensor memory, so a multiprocessor
has one CTA of them. That the speeds are of these versions is an inference.
"""

from __future__ import annotations

from dataclasses import dataclass

CUBE = (4096, 4096, 4096)
ALL_COLUMNS = 512
LEARN_CUDA = "github.com/gau-nernst/learn-cuda, 02e_matmul_sm100"
MODULAR = "github.com/modular/modular, max/kernels/test/gpu/linalg/matmul_blackwell_iterative"


@dataclass(frozen=True)
class Timed:
    """A kernel as it was timed: its passes, shape, columns of tensor memory, kind of inputs, their
    type and that of C, and the clock in GHz where the author's profiler held one. `joined`: its
    pipeline stands for one with roles whose warps all meet before a tile is stored."""

    pipeline: str
    source: str
    shape: tuple[int, int, int] = CUBE
    columns: int | None = None
    inputs: str = "random"
    dtype: str = "bf16"
    c_dtype: str = "bf16"
    clock: float = 0
    joined: bool = False


_COPIED = "tma-insertion,swizzle-selection"
_PAIR = "clustering{shape=2x1 pair=true}"
_WHOLE, _PIECES = (
    "epilogue-staging{columns=256 buffers=1}",
    "epilogue-staging{columns=32 buffers=2}",
)


def _learned(file: str, tile: str, *passes: str) -> Timed:
    return Timed(",".join((f"tiling{{tile={tile}}}", *passes)), f"{LEARN_CUDA}/{file}")


def _modular(file: str, tile: str, *passes: str, shape: tuple[int, int, int] = CUBE) -> Timed:
    text = ",".join((f"tiling{{tile={tile}}}", *passes))
    return Timed(text, f"{MODULAR}/{file}", shape, ALL_COLUMNS, "quiet")


_V5 = (_COPIED, _PAIR, "pipelining{stages=7}", "warp-specialization")
_NARROW = "expand-loops{reads=matrices}"
TIMED = {
    "v1a": _learned("matmul_v1.cu", "128x256x256", "tma-insertion{box=2d}"),
    "v1b": _learned("matmul_v1.cu", "128x256x256", "tma-insertion{box=3d}"),
    "v2a": _learned("matmul_v2.cu", "128x256x256", _COPIED),
    "v2b": _learned("matmul_v2.cu", "128x256x256", _COPIED),
    "v3": _learned("matmul_v3.cu", "128x256x128", _COPIED, "pipelining{stages=2}"),
    "v4": _learned(
        "matmul_v4.cu", "128x128x64", _COPIED, "pipelining{stages=7}", "warp-specialization"
    ),
    "v5": _learned("matmul_v5.cu", "128x256x64", *_V5),
    "v6": _learned("matmul_v6.cu", "128x256x64", *_V5, "persistence{scheduler=static order=n}"),
    "kernel2": _modular("2_tensor_core.mojo", "64x256x64", "tma-insertion", _NARROW),
    "kernel3": _modular("3_swizzling.mojo", "64x256x64", _COPIED, _NARROW),
    "kernel4": _modular("4_tma_stmatrix.mojo", "64x256x64", _COPIED, _WHOLE),
    "kernel5": _modular(
        "5_2sm.mojo", "128x256x64", _COPIED, _WHOLE, _PAIR, shape=(4096, 2560, 8192)
    ),
    "kernel6": _modular(
        "6_2sm_pipelined.mojo",
        "128x256x64",
        *(_COPIED, _WHOLE, _PAIR, "pipelining{stages=5}", "warp-specialization"),
    ),
    "kernel7": _modular(
        "7_double_buf_writeout.mojo",
        "128x256x64",
        *(_COPIED, _PIECES, _PAIR, "pipelining{stages=6}", "warp-specialization"),
    ),
    "kernel8": _modular(
        "8_clc_tmem_ping.mojo",
        "128x128x64",
        *(_COPIED, _PIECES, _PAIR, "pipelining{stages=8}", "warp-specialization"),
        "persistence{scheduler=clc order=grouped group=8}",
    ),
}
"""By preset."""
