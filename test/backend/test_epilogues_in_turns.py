"""Where the consumers of a tile take turns, one frees the ring before it computes its epilogue."""

from __future__ import annotations

from itertools import takewhile

from torch.nn.functional import gelu

from tilewright.compiler import inspect_sass
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import MatmulSpec

PERMUTES = (
    "tiling{tile=128x128x64},tma-insertion{box=2d},swizzle-selection,"
    "epilogue-staging{columns=32 buffers=4},pipelining{stages=6},warp-specialization,"
    "persistence{order=grouped group=8},ping-pong"
)
DONE, FREE = "WARPGROUP.DEPBAR.LE gsb0, 0x0", "SYNCS.ARRIVE"
"""The MMAs of a tile are through; a slot is free."""


def test_the_last_slot_is_free_before_anything_is_computed() -> None:
    """ptxas at -O3 computes half of the tile first, for which the other consumer's loads wait."""
    spec = MatmulSpec(16384, 4096, 1024)
    spec, made, *_ = import_epilogue(spec, Frame.of([16384, 4096], 0), gelu, [])
    source = LinalgText(spec.mlir_text(made), "matmul")
    compiled = compile_matmul(source, target="sm_90a", pipeline=PERMUTES)
    assert compiled.assembled is not None
    sass = inspect_sass.disassemble(compiled.assembled.cubin)
    assert sass is not None
    program = [each.text for each in inspect_sass.parse_kernel(sass, compiled.entry)]
    parts = [
        list(takewhile(lambda text: DONE not in text, program[at + 1 :]))
        for at, text in enumerate(program)
        if DONE in text
    ]
    freeing = [part for part in parts if any(FREE in text for text in part[:40])]
    assert len(parts) == 2 and len(freeing) == 1
    assert not any(text.startswith(("FFMA", "FMUL", "MUFU")) for part in freeing for text in part)
