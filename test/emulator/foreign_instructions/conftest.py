"""Small one-warp kernels: %rd0.. are the parameters, %lane the lane, %tile 32 KiB of shared."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

POISON = 0xA5


def kernel(body: str, parameters: int, target: str) -> str:
    names = [f"p{number}" for number in range(parameters)]
    declared = ", ".join(f".param .u64 {name}" for name in names)
    loads = " ".join(f"ld.param.u64 %rd{i}, [{name}];" for i, name in enumerate(names))
    return f""".version 8.8
.target {target}
.address_size 64
.visible .entry k({declared}) {{
  .shared .align 1024 .b8 tile[32768]; .shared .align 8 .b8 bar[16];
  .reg .b32 %r<160>; .reg .b64 %rd<32>; .reg .pred %p<8>; .reg .b32 %lane, %tile, %bar;
  .reg .b64 %big; .reg .b16 %h<16>;
  mov.u32 %lane, %tid.x; mov.u32 %tile, tile; mov.u32 %bar, bar; {loads}
  {body}
  ret; }}"""


@pytest.fixture
def run():
    """run(body, *arrays, target=…, threads=32, seed=0, **options) → the launch's Report."""

    def launch_it(body, *arrays, target="sm_100a", threads=32, seed=0, **options):
        text = kernel(body, len(arrays), target)
        return launch(text, "k", grid=1, block=threads, params=list(arrays), seed=seed, **options)

    return launch_it


@pytest.fixture
def trapped(run):
    """trapped(body, *arrays, …) → the Trap that the kernel ends with."""

    def caught_by(body, *arrays, **options) -> Trap:
        with pytest.raises(Trap) as caught:
            run(body, *arrays, **options)
        return caught.value

    return caught_by


@pytest.fixture
def poisoned():
    """poisoned(shape, dtype) → an array full of a pattern that no test expects."""

    def make(shape, dtype) -> np.ndarray:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.full(size, POISON, np.uint8).view(dtype).reshape(shape)

    return make
