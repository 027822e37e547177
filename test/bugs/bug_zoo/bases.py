"""The kernels that bugs are put into: presets at small shapes, compiled once a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import all_presets
from tilewright.compiler.presets import HOPPER_PRESETS
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.bundles.bundle import Bundle
from tilewright.runtime.bundles.manifest import output
from tilewright.runtime.judge.reference import compare, expected_output, to_float64
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

Edit = Callable[[str], str]
ManifestEdit = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@cache
def _compiled(shape: tuple[int, int, int], pipeline: str, chip: str, dtype: str, c_dtype: str):
    spec = MatmulSpec(*shape, dtype, dtype, c_dtype)
    return compile_matmul(spec, target=chip, pipeline=pipeline, until="ptx")


@dataclass(frozen=True)
class Matmul:
    """A preset, M, N and K, what to exchange in the text of its pipeline, and the types of A and B,
    and of C."""

    preset: str
    shape: tuple[int, int, int]
    options: tuple[str, str] = field(default=("", ""))
    dtype: str = "bf16"
    c_dtype: str = "bf16"

    @property
    def title(self) -> str:
        """As the table of bugs calls it."""
        changed = f" ({self.options[1].strip(',')})" if self.options[1] else ""
        dtype = "" if self.dtype == "bf16" else f" {self.dtype}"
        to = "" if self.c_dtype == "bf16" else f" → {self.c_dtype}"
        return f"{self.preset} {'×'.join(map(str, self.shape))}{dtype}{to}{changed}"

    @property
    def pipeline(self) -> str:
        """The preset's passes with the options exchanged."""
        old, new = self.options
        preset = all_presets()[self.preset]
        assert old in preset
        return preset.replace(old, new) if old else preset + new

    @property
    def compiled(self) -> Any:
        """What the compiler makes of it, for the chip that the preset is written for."""
        chip = "sm_90a" if self.preset in HOPPER_PRESETS else "sm_100a"
        return _compiled(self.shape, self.pipeline, chip, self.dtype, self.c_dtype)

    @property
    def ptx(self) -> str:
        """The kernel without a bug."""
        return self.compiled.ptx

    def run(self, ptx: str, seed: int, describe: ManifestEdit | None = None, check: str = "full"):
        """Run a text of this kernel; (report, whether every element of the output is right)."""
        manifest = self.compiled.manifest
        tensors = make_tensors(manifest, seed)
        bundle = Bundle(describe(manifest) if describe else manifest, ptx, b"")
        report = open_device("emulator").launch(bundle, tensors, seed, check=check)
        c = output(manifest)
        actual = to_float64(tensors[c["name"]], c["dtype"])
        return report, compare(expected_output(manifest, tensors), actual, c["dtype"]).passed


SEQUENTIAL = Matmul("kernel3", (72, 72, 136), (",expand-loops{reads=matrices}", ""))
STAGED = Matmul("kernel4", (72, 72, 136))
PLAIN = Matmul("v1a", (136, 136, 72))
ROLES = Matmul("v4", (136, 264, 392))
PAIR = Matmul("v5", (264, 264, 136))
PERSISTENT = Matmul("v6", (520, 264, 72), ("scheduler=static", "scheduler=static ctas=2"))
SCALED = Matmul("v6", (136, 224, 1024), ("tile=128x256x64", "tile=128x224x128"), "mxfp8")
SCALED_PAIR = Matmul("v6", (136, 40, 512), ("tile=128x256x64", "tile=64x32x128"), "mxfp8")
PIECES = Matmul("kernel7", (264, 264, 72))
QUANTISED = Matmul("kernel7", (136, 256, 72), ("columns=32", "columns=64"), c_dtype="nvfp4")
LAUNCH_CONTROL = Matmul("kernel8", (520, 264, 72))
PING_PONG = Matmul("h8", (264, 136, 200), ("group=8", "group=8 ctas=1"))
DEPENDENT = Matmul("v4", (136, 264, 136), ("", ",lower-to-nvvm{pdl=true}"))
NARROW = Matmul("v2a", (136, 72, 72), ("tile=128x128x128", "tile=64x64x32"))
PLAIN_CLUSTER = Matmul("v1a", (264, 136, 72), ("", ",clustering{shape=2x1 pair=false}"))
SPLIT_CLUSTER = Matmul(
    "h3", (72, 72, 264), (",tma-insertion", ",split-k{parts=2 over=cluster},tma-insertion")
)
BY_THREADS = Matmul("kernel3", (72, 40, 68), ("tma-insertion{box=2d},", ""))
