"""Compiles the kernels that benchmarks/gpu_test.py checks, on a machine that needs no GPU.

    python benchmarks/gpu_test_bundles.py FOLDER [--target sm_90a]

Every prefix of the default pipeline for several tiles and layouts, clusters, orders of tiles,
operands that threads copy, and the presets of the chip: one bundle each, FOLDER/NAME.zip.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline, presets_of
from tilewright.compiler.spec import MatmulSpec

PREFIXES = [call.name for call in parse_pipeline(DEFAULT_PIPELINE)]
TILES = ("64x64x64", "128x128x64", "128x256x64", "256x128x64")
CLUSTERS = ("2x1", "1x2", "2x2", "4x1", "3x2")
ODD = ((1, 1, 1), (77, 33, 51), (129, 264, 72), (150, 266, 102), (1000, 1112, 1096))

Case = tuple[str, MatmulSpec, str, str | None]  # name, spec, pipeline, the last pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_90a", help="chip (default sm_90a)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, spec, pipeline, last in cases(options.target):
        how = {"target": options.target, "pipeline": pipeline, "stop_after": last}
        as_bundle(compile_matmul(spec, **how), options.folder / f"{name}.zip")
        print(name, file=sys.stderr)
    return 0


def cases(target: str) -> Iterator[Case]:
    """Every kernel of the set."""
    yield from _prefixes()
    yield from _clusters()
    for order in ("m", "n", "grouped"):
        spec = MatmulSpec(2000, 2600, 712, "f16", "f16", "f16")
        yield f"order-{order}", spec, _default(persistence=f"order={order} ctas=20"), None
    for name, pipeline in presets_of(target).items():
        for shape in ((300, 520, 264), (1000, 1112, 1096)):
            yield f"{name}-{_joined(shape)}", MatmulSpec(*shape), pipeline, None


def _prefixes() -> Iterator[Case]:
    for prefix in PREFIXES:
        for tile in TILES:
            for a, b in ("kk", "mn"):
                spec = MatmulSpec(300, 520, 264, a_major=a, b_major=b)
                yield f"{prefix}-{tile}-{a}{b}", spec, _default(tiling=f"tile={tile}"), prefix
        for shape in ODD:
            spec = MatmulSpec(*shape, c_dtype="f32")
            yield f"{prefix}-{_joined(shape)}", spec, DEFAULT_PIPELINE, prefix


def _clusters() -> Iterator[Case]:
    for tile in TILES:
        for shape in CLUSTERS:
            pipeline = _default(tiling=f"tile={tile}", clustering=f"shape={shape}")
            spec = MatmulSpec(600, 1000, 712, b_major="n")
            yield f"cluster-{shape}-{tile}", spec, pipeline, None
            yield f"cluster-{shape}-{tile}-pipelining", spec, pipeline, "pipelining"


def _default(**options: str) -> str:
    """The default pipeline with options for some of its passes."""
    calls = (f"{name}{{{options[name]}}}" if name in options else name for name in PREFIXES)
    return ",".join(calls)


def _joined(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


if __name__ == "__main__":
    sys.exit(main())
