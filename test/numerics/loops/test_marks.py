"""Kernels that tell when their agents come to places: right as before, and in the order of time."""

import sys
from pathlib import Path

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.references import compare_with, of_source

BENCHMARKS = str(Path(__file__).parents[3] / "benchmarks")
TMA = "tma-insertion,swizzle-selection"
ROLES = "pipelining{stages=3},warp-specialization"
STAGED = "epilogue-staging{columns=32 buffers=2}"
IN_TURNS = "epilogue-staging{columns=32 buffers=4}"
HOPPER, BLACKWELL = f"tiling{{tile=64x64x64}},{TMA}", f"tiling{{tile=128x64x64}},{TMA}"
KERNELS = {
    "a tile": ("sm_90a", f"{HOPPER},{ROLES}"),
    "tiles": ("sm_90a", f"{HOPPER},{STAGED},{ROLES},persistence{{ctas=3}}"),
    "turns": ("sm_90a", f"{HOPPER},{IN_TURNS},{ROLES},persistence{{ctas=2}},ping-pong"),
    "split": ("sm_90a", f"{HOPPER},split-k{{parts=2}},{ROLES}"),
    "parts": ("sm_90a", f"{HOPPER},split-k{{parts=2 over=grid}},{ROLES}"),
    "pairs": ("sm_100a", f"{BLACKWELL},{STAGED},clustering{{shape=2x1}},{ROLES},persistence"),
    "claims": ("sm_100a", f"{BLACKWELL},{STAGED},{ROLES},persistence{{scheduler=clc}}"),
    "stores": ("sm_100a", f"{BLACKWELL},{ROLES}"),
}
IN_ORDER = ("begin", "issued", "arrived", "sums", "stored", "end")


def run(name, unit="cycles", shape=(136, 72, 136)):
    """(names of places, marks of a kernel that has been compared)."""
    target, pipeline = KERNELS[name]
    spec = MatmulSpec(*shape)
    text = f"{pipeline},instrument{{unit={unit}}}"
    compiled = compile_matmul(spec, target=target, pipeline=text)
    cubin = compiled.assembled.cubin
    bundle = Bundle(seal(compiled.manifest, compiled.ptx, cubin), compiled.ptx, cubin)
    reference = of_source(spec)
    tensors = reference.tensors(bundle.manifest, 1)
    open_device("emulator").launch(bundle, tensors, 1, check="full")
    assert compare_with(reference, bundle.manifest, tensors).passed
    return bundle.manifest["names"]["marks"], tensors["marks"].tolist()


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", KERNELS)
def test_places_are_told_in_the_order_of_time(name):
    places, rows = run(name)
    roles = dict.fromkeys(place.partition(".")[0] for place in places[1:])
    for row in rows:
        at = dict(zip(places, row, strict=True))
        if name == "claims" and not any(row):
            continue  # another CTA has taken its tile before it began
        assert at["start"] and at["load.issued"]
        for role in roles:
            told = [at[f"{role}.{what}"] for what in IN_ORDER if at.get(f"{role}.{what}")]
            assert told == sorted(told) and (not told or at["start"] < told[0])
        first = [at[f"{role}.arrived"] for role in roles if at.get(f"{role}.arrived")]
        assert not first or at["load.begin"] < min(first)
    assert any(row[places.index(f"{role}.end")] for role in roles for row in rows)


def test_phases_of_a_launch_make_up_its_time(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    sys.modules.pop("kernel_ends", None)
    import kernel_ends

    places, rows = run("a tile", "nanoseconds", (64, 64, 128))
    told = kernel_ends.phases(places, rows)
    inside = sum(told[name] for name in kernel_ends.PHASES[1:])
    assert told["ramp"] == 0 and inside == told["inside"] == told["whole"] > 0
    wrapped = [[(value + 2**32 - 10 - rows[0][0]) % 2**32 for value in row] for row in rows]
    signed = [[value - 2**32 if value >= 2**31 else value for value in row] for row in wrapped]
    assert kernel_ends.phases(places, signed) == told


@pytest.mark.parametrize(
    ("pipeline", "shape", "rule"),
    [
        (f"{HOPPER},instrument", {}, "places are those of roles, got none"),
        (f"{KERNELS['tiles'][1]},instrument,instrument", {}, "places are marked already"),
        (KERNELS["tiles"][1] + ",instrument", {"dynamic_m": True}, "needs a grid that is known"),
    ],
)
def test_kernels_that_cannot_tell_are_refused(pipeline, shape, rule):
    with pytest.raises(CompileError, match=f"instrument: .*{rule}"):
        compile_matmul(MatmulSpec(256, 128, 128, **shape), target="sm_90a", pipeline=pipeline)
