"""A process that compiles all day does not grow: what one compilation took, it gives back."""

import subprocess
import sys

import pytest

WARM, COUNTED = 4, 10
PROGRAM = f"""
import ctypes, gc, sys
from pathlib import Path
from tilewright.compiler import backend, driver
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.mlir import ir, llvm_ir_of

def resident_kb():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])

PIPELINE = "normalize,tiling{{tile=128x128x64}},lower-to-nvvm"
text = driver.compile_matmul(MatmulSpec(128, 128, 64), pipeline=PIPELINE, until="llvm").llvm_ir
emit = lambda: backend.emit_ptx(text)

context = ir.Context()
line = "%{{0}} = llvm.mlir.constant({{0}} : i64) : i64\\n llvm.call @g(%{{0}}) : (i64) -> ()\\n"
body = "".join(line.format(i) for i in range(1500))
with context:
    module = ir.Module.parse(
        "llvm.func @g(i64)\\n llvm.func @f() {{" + body + "llvm.return }}")

def translate():
    with context:
        assert len(llvm_ir_of(module.operation)) > 30_000

for work in (emit, translate):
    for _ in range({WARM}):
        work()
    before = resident_kb()
    for _ in range({COUNTED}):
        work()
    print((resident_kb() - before) / {COUNTED})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_each_stage_of_the_compilation_gives_its_memory_back():
    """Before, an emission kept 228 KB (its passes), a translation its 32 KB of text."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    kept_by_emission, kept_by_translation = map(float, done.stdout.split())
    assert kept_by_emission < 40
    assert kept_by_translation < 10
