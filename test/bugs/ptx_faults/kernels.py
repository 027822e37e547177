"""Kernels of ours that faults are put into, each as small as its subject allows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.bundles.bundle import Bundle
from tilewright.runtime.bundles.manifest import outputs
from tilewright.runtime.bundles.sizes import manifest_for
from tilewright.runtime.errors import DeviceError
from tilewright.runtime.judge.gaps import refuse_written_gaps
from tilewright.runtime.judge.reference import compare, expected_output, to_float64
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

RING = "tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization"
STAGED = "tma-insertion,swizzle-selection,epilogue-staging{columns=32 buffers=2}"
FP8 = ("e4m3", "e4m3", "f32")


class Kernel(NamedTuple):
    """What is multiplied, for which chip, by which passes; rows: of a kernel for any M; depth: of
    one for any K."""

    spec: MatmulSpec
    chip: str
    pipeline: str
    rows: int = 0
    depth: int = 0


def _staged(tile: str, cluster: str = "", end: str = "") -> str:
    shape = f"clustering{{shape={cluster}}}," if cluster else ""
    ring = "pipelining{stages=2},warp-specialization"
    return f"tiling{{tile={tile}}},{STAGED},{shape}{ring}{end}"


KERNELS: Mapping[str, Kernel] = {
    "one slot": Kernel(
        MatmulSpec(64, 32, 128), "sm_90a", "tiling{tile=64x32x64},tma-insertion,swizzle-selection"
    ),
    "roles": Kernel(MatmulSpec(72, 40, 200), "sm_90a", _staged("64x32x64")),
    "roles in a cluster": Kernel(MatmulSpec(128, 64, 192), "sm_90a", _staged("64x32x64", "2x1")),
    "consumers in turns": Kernel(
        MatmulSpec(192, 32, 136), "sm_90a",
        _staged("64x32x64", end=",persistence{order=m ctas=1},ping-pong"),
    ),
    "K over a grid": Kernel(
        MatmulSpec(64, 32, 520), "sm_90a",
        f"tiling{{tile=64x32x64}},split-k{{parts=2 over=grid}},{RING}",
    ),
    "K over a cluster": Kernel(
        MatmulSpec(64, 32, 520), "sm_90a",
        f"tiling{{tile=64x32x64}},split-k{{parts=2 over=cluster}},{RING}",
    ),
    "groups": Kernel(
        MatmulSpec(90, 24, 72, groups=3, c_dtype="f32"), "sm_90a",
        f"tiling{{tile=64x32x64}},{RING},persistence{{ctas=2}}",
    ),
    "scales of 128": Kernel(
        MatmulSpec(64, 40, 656, *FP8, a_scales="1x128", b_scales="128x128"), "sm_90a",
        f"tiling{{tile=64x32x128}},{RING}",
    ),
    "weights of 4 bits": Kernel(
        MatmulSpec(20, 72, 416, "bf16", "s4", "f32", group_size=32, scale_dtype="bf16"), "sm_90a",
        "tiling{tile=64x16x64 mma=wgmma.mma_async+cvt+fma swap=true},"
        "tma-insertion,swizzle-selection,pipelining{stages=3},warp-specialization",
    ),
    "rows of any number": Kernel(
        MatmulSpec(96, 32, 264, dynamic_m=True, c_dtype="f32"), "sm_90a",
        f"tiling{{tile=64x32x64}},{RING}", 70,
    ),
    "few rows of any number": Kernel(
        MatmulSpec(96, 32, 264, dynamic_m=True, c_dtype="f32"), "sm_90a",
        f"tiling{{tile=64x32x64}},{RING}", 23,
    ),
    "exchanged": Kernel(
        MatmulSpec(8, 72, 200), "sm_90a", f"tiling{{tile=64x8x64 swap=true}},{RING}"
    ),
    "nine products": Kernel(
        MatmulSpec(64, 16, 104, "bf16x9", "bf16x9", "f32"), "sm_90a",
        f"tiling{{tile=64x16x32}},{RING}",
    ),
    "mma.sync": Kernel(
        MatmulSpec(64, 32, 104), "sm_80",
        "tiling{tile=64x32x32},copy-insertion,swizzle-selection,pipelining{stages=3}",
    ),
    "tcgen05": Kernel(
        MatmulSpec(520, 32, 264), "sm_100a", _staged("128x32x64", end=",persistence{ctas=1}")
    ),
    "tcgen05 in pairs": Kernel(
        MatmulSpec(776, 32, 264), "sm_100a",
        _staged("128x32x64", "2x1", ",persistence{ctas=2}"),
    ),
    "launch control": Kernel(
        MatmulSpec(1544, 32, 72), "sm_100a", _staged("128x32x64", end=",persistence{scheduler=clc}")
    ),
    "mxfp8": Kernel(
        MatmulSpec(520, 32, 672, "mxfp8", "mxfp8"), "sm_100a",
        f"tiling{{tile=128x32x128}},{RING},persistence{{ctas=1}}",
    ),
    "nvfp4 in pairs": Kernel(
        MatmulSpec(264, 32, 544, "nvfp4", "nvfp4"), "sm_100a",
        "tiling{tile=128x32x256},tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true},"
        "pipelining{stages=2},warp-specialization,persistence{ctas=2}",
    ),
    "stores apart": Kernel(
        MatmulSpec(200, 152, 72), "sm_90a",
        "tiling{tile=128x144x32},tma-insertion,swizzle-selection,"
        "epilogue-staging{columns=16 buffers=2 by=warpgroup},"
        "pipelining{stages=2},warp-specialization,persistence{order=m ctas=1}",
    ),
    "groups of equal height": Kernel(
        MatmulSpec(90, 136, 72, groups=3), "sm_90a",
        "tiling{tile=128x64x64 swap=true},tma-insertion,swizzle-selection,"
        "epilogue-staging{columns=32 buffers=2},pipelining{stages=2},warp-specialization,"
        "persistence{order=grouped group=8 ctas=2},level-groups{unit=16}",
    ),
    "a gradient of weights": Kernel(
        MatmulSpec(72, 104, 136, a_major="m", b_major="n"), "sm_90a",
        f"tiling{{tile=64x96x64}},{RING}",
    ),
}  # fmt: skip

PAIRS = (
    "tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true},pipelining{stages=2},"
    "warp-specialization,persistence{ctas=2}"
)
DRAWN: Mapping[str, Kernel] = {
    "turnstile": Kernel(
        MatmulSpec(136, 32, 400), "sm_100a",
        f"tiling{{tile=128x32x64}},split-k{{parts=3 over=grid}},{RING}",
    ),
    "pairs by launch control": Kernel(
        MatmulSpec(776, 32, 72), "sm_100a",
        _staged("128x32x64", "2x1", ",persistence{scheduler=clc}"),
    ),
    "mxfp4 in pairs": Kernel(
        MatmulSpec(264, 32, 544, "mxfp4", "mxfp4"), "sm_100a", f"tiling{{tile=128x32x256}},{PAIRS}"
    ),
    "nvfp4": Kernel(
        MatmulSpec(136, 32, 544, "nvfp4", "nvfp4"), "sm_100a", f"tiling{{tile=128x32x256}},{RING}"
    ),
    "any K": Kernel(
        MatmulSpec(136, 32, 256, a_major="m", b_major="n", dynamic_k=True), "sm_100a",
        f"tiling{{tile=128x32x64}},{RING}", depth=136,
    ),
    "ragged groups": Kernel(
        MatmulSpec(150, 24, 72, groups=3, c_dtype="f32"), "sm_100a",
        f"tiling{{tile=128x32x64}},{RING},persistence{{ctas=2}}",
    ),
    "groups of mxfp8": Kernel(
        MatmulSpec(150, 32, 160, "mxfp8", "mxfp8", groups=3), "sm_100a",
        f"tiling{{tile=128x32x128}},{RING},persistence{{ctas=2}}",
    ),
}  # fmt: skip
"""Kernels of which `ptx_numbers` draws mutants beside those of `KERNELS`."""


@cache
def compiled(name: str) -> Bundle:
    """The kernel of that name."""
    kernel = {**KERNELS, **DRAWN}[name]
    made = compile_matmul(kernel.spec, target=kernel.chip, pipeline=kernel.pipeline, until="ptx")
    assert made.ptx is not None
    manifest = made.manifest
    sizes = {"m": kernel.rows, "k": kernel.depth}
    given = {name: size for name, size in sizes.items() if size}
    if given:
        manifest = manifest_for(manifest, given)
    return Bundle(manifest, made.ptx, b"")


def verdict(name: str, ptx: str, seed: int, max_steps: int | None = None) -> str | None:
    """What is wrong with a text in place of the kernel's, None if nothing is seen; `wrong elements`
    where the emulator says nothing."""
    made = compiled(name)
    bundle = Bundle(made.manifest, ptx, b"")
    tensors: dict[str, Any] = make_tensors(bundle.manifest, seed)
    try:
        report = open_device("emulator").launch(bundle, tensors, seed, max_steps=max_steps)
        for c in outputs(bundle.manifest):
            refuse_written_gaps(c["name"], tensors[c["name"]])
    except DeviceError as error:
        return getattr(error, "category", "refused")
    for c in outputs(bundle.manifest):
        expected = expected_output(bundle.manifest, tensors, name=c["name"])
        if not compare(expected, to_float64(tensors[c["name"]], c["dtype"]), c["dtype"], "").passed:
            return "a warning" if report.warnings else "wrong elements"
    return "a warning" if report.warnings else None
