"""Pipelines that a pass refuses, and the whole message with which it does."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

TMA = "tiling,tma-insertion,swizzle-selection"
ROLES = f"{TMA},warp-specialization"
SPLIT = f"{TMA},split-k"


def tile(text):
    """`TMA` with tiles of a size."""
    return TMA.replace("tiling", f"tiling{{tile={text}}}")


def message_of(pipeline, spec=None, target="sm_100a"):
    with pytest.raises(CompileError) as caught:
        spec = spec or MatmulSpec(300, 520, 264)
        compile_matmul(spec, pipeline=pipeline, target=target, until="ptx")
    return str(caught.value)
