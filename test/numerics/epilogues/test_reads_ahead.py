"""Vectors and scalars of an epilogue, read by its threads into registers ahead of the store."""

import pytest

from tilewright.compiler.importers.linalg_text import LinalgText

pytestmark = pytest.mark.pairwise

TMA = "tma-insertion,swizzle-selection"
RESTS = {
    "roles": "pipelining{stages=3},warp-specialization,persistence{order=m ctas=2}",
    "turns": "pipelining{stages=3},warp-specialization,persistence{order=m ctas=2},ping-pong",
    "a cluster": "clustering{shape=2x1 pair=false},pipelining{stages=2},warp-specialization",
    "one program": "pipelining{stages=2}",
    "one tile": "",
}
SHAPES = {"n": lambda m, n: f"{n}x", "m": lambda m, n: f"{m}x", "": lambda m, n: ""}


def vectors(m, n, k, operands, c_dtype="bf16"):
    """`c = (sum - e0) * e1 - e2 …` in f32; of each operand its axes and its type."""
    lines, result = [], "%in0"
    for number, (_, dtype) in enumerate(operands, 1):
        wide = f"%in{number}"
        if dtype != "f32":
            lines.append(f"    %w{number} = arith.extf %in{number} : {dtype} to f32")
            wide = f"%w{number}"
        name = "mulf" if number % 2 == 0 else "subf"
        lines.append(f"    %s{number} = arith.{name} {result}, {wide} : f32")
        result = f"%s{number}"
    if c_dtype != "f32":
        lines.append(f"    %last = arith.truncf {result} : f32 to {c_dtype}")
        result = "%last"
    views = [f"tensor<{SHAPES[axes](m, n)}{dtype}>" for axes, dtype in operands]
    axes = ["m, n", *(axes for axes, _ in operands), "m, n"]
    maps = ", ".join(f"affine_map<(m, n) -> ({each})>" for each in axes)
    types = ["f32", *(dtype for _, dtype in operands), c_dtype]
    block = ", ".join(f"%in{number}: {dtype}" for number, dtype in enumerate(types))
    of_c, sums = f"tensor<{m}x{n}x{c_dtype}>", f"tensor<{m}x{n}xf32>"
    a, b = f"tensor<{m}x{k}xbf16>", f"tensor<{n}x{k}xbf16>"
    names = [f"%e{number}" for number in range(len(operands))]
    arguments = "".join(f", {name}: {view}" for name, view in zip(names, views, strict=True))
    text = "\n".join(lines)
    return LinalgText(
        f"""
func.func @f(%a: {a}, %b: {b}{arguments}) -> {of_c} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {sums}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}
  %sum = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
      affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%a, %b : {a}, {b}) outs(%init : {sums}) -> {sums}
  %into = tensor.empty() : {of_c}
  %c = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
    ins({", ".join(["%sum", *names])} : {", ".join([sums, *views])}) outs(%into : {of_c}) {{
  ^bb0({block}):
{text}
    linalg.yield {result} : {c_dtype}
  }} -> {of_c}
  return %c : {of_c}
}}
""",
        "f",
    )


def pipeline(rest, staging="columns=32 buffers=2", tile="64x64x64"):
    """Passes that read vectors and scalars into registers."""
    staged = f"epilogue-staging{{{staging} vectors=registers}}"
    return ",".join(filter(None, [f"tiling{{tile={tile}}}", TMA, staged, RESTS[rest]]))


def held(compiled):
    """Reads of global memory in the kernel, and how many of them stand behind its first MMA."""
    lines = compiled.ptx.splitlines()
    loads = [number for number, line in enumerate(lines) if "ld.global" in line]
    first = next(number for number, line in enumerate(lines) if "wgmma.mma_async" in line)
    return len(loads), sum(number > first for number in loads)


@pytest.mark.sweep(6)
@pytest.mark.array(1, rest=RESTS, columns=(16, 32), n=(64, 136), types=("bf16", "f32", "f16"))
def test_all_are_read_before_the_tiles_first_mma(check_matmul, rest, columns, n, types, seed=1):
    source = vectors(136, n, 72, [("n", types), ("m", "f32"), ("", "f32"), ("n", "bf16")])
    text = pipeline(rest, f"columns={columns} buffers=2")
    compiled, _ = check_matmul(source, target="sm_90a", pipeline=text, seed=seed)
    if rest != "turns":  # whose second consumer comes behind the first
        assert held(compiled)[1] == 0


def test_a_thread_reads_each_of_its_places_once(check_matmul):
    """Of 64 columns a thread has 16, in pairs; it has two rows, and all threads one scalar."""
    source = vectors(128, 64, 64, [("n", "bf16"), ("m", "f32"), ("", "f32")])
    compiled, _ = check_matmul(source, target="sm_90a", pipeline=pipeline("one tile"))
    assert held(compiled) == (8 + 2 + 1, 0)


def test_larger_tiles_have_rows_of_several_mmas(check_matmul):
    source = vectors(150, 72, 64, [("m", "bf16"), ("n", "f32")])
    text = pipeline("one program", tile="128x64x64")
    check_matmul(source, target="sm_90a", pipeline=text)


@pytest.mark.parametrize("axes", ["n", "m"])
def test_tensor_memory_leaves_them_to_the_store(check_matmul, axes):
    """There each piece is read in a loop; a remark says so."""
    text = pipeline("roles", tile="128x64x64")
    source = vectors(136, 72, 64, [(axes, "bf16")])
    compiled, _ = check_matmul(source, target="sm_100a", pipeline=text)
    assert "ld.global" in compiled.ptx
