"""What the compiler refuses, one row each, whole message compared."""

from pathlib import Path

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import GPUS, TARGETS

PASS_NAMES = (
    "normalize, tiling, tma-insertion, copy-insertion, swizzle-selection, split-k, "
    "epilogue-staging, clustering, pipelining, warp-specialization, persistence, "
    "ping-pong, slot-reuse, k-rotation, skip-zeros, level-groups, edge-boxes, instrument, "
    "assign-threads, plan-memory, expand-loops, pipes-to-barriers, select-instructions"
)
PRESET_NAMES = (
    "v1a, v1b, v2a, v2b, v3, v4, v5, v6, "
    "kernel2, kernel3, kernel4, kernel5, kernel6, kernel7, kernel8, "
    "h1, h2, h3, h4, h5, h6, h7, h8, s1, s2, s3, s4, s5, v0, "
    "puzzle-naive, puzzle-shared, puzzle-tiled, puzzle-async, puzzle-registers, kernel1"
)
SPEC = {"m": 256, "n": 256, "k": 128}
OPERANDS = (
    "f16, bf16, tf32, e4m3, e5m2, s8, u8, f32, f64, 3xtf32, bf16x9, "
    "mxfp8, mxfp8_e5m2, mxfp6, mxfp6_e3m2, mxfp4, nvfp4, mxfp8_1x128, mxfp8_128x128, "
    "mxfp4_1x16"
)
DOUBLES = {"a_dtype": "f64", "b_dtype": "f64", "acc_dtype": "f64"}
INTEGERS = {"a_dtype": "s8", "b_dtype": "u8", "acc_dtype": "s32", "c_dtype": "s32"}


def message_of(action):
    with pytest.raises(CompileError) as caught:
        action()
    return str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"m": 0}, "spec: m must be 1 to 2147483647, got 0"),
        ({"m": True}, "spec: m must be an int, 1 to 2147483647, got True"),
        ({"dynamic_m": 1}, "spec: dynamic_m must be True or False, got 1"),
        ({"k": -3}, "spec: k must be 1 to 2147483647, got -3"),
        ({"n": 2**40}, "spec: n must be 1 to 2147483647, got 1099511627776; multiply in parts"),
        ({"a_dtype": "fp8"}, f"spec: a_dtype must be one of {OPERANDS}, got 'fp8'"),
        ({"b_dtype": "s32"}, f"spec: b_dtype must be one of {OPERANDS}, s4, u4, got 's32'"),
        (
            {"b_dtype": "f32"},
            "spec: a_dtype and b_dtype must be one type, got bf16 and f32; convert one of them",
        ),
        (
            {"c_dtype": "f64"},
            "spec: c_dtype must be one of bf16, f16, f32, e4m3, e5m2 for sums in f32, got f64",
        ),
        (DOUBLES | {"c_dtype": "f32"}, "spec: c_dtype must be f64 for sums in f64, got f32"),
        (
            {"a_dtype": "f32", "b_dtype": "f64"},
            "spec: a_dtype and b_dtype must be one type, got f32 and f64; convert one of them",
        ),
        (
            {"c_dtype": "i8"},
            "spec: c_dtype must be one of bf16, f16, f32, s32, f64, e4m3, e5m2, mxfp8, mxfp8_e5m2, "
            "mxfp6, mxfp6_e3m2, mxfp4, nvfp4, got 'i8'",
        ),
        (
            {"c_dtype": "s32"},
            "spec: c_dtype must be one of bf16, f16, f32, e4m3, e5m2 for sums in f32, got s32",
        ),
        ({"acc_dtype": "f16"}, "spec: acc_dtype must be one of f32, s32, f64, got 'f16'"),
        ({"acc_dtype": "s32"}, "spec: acc_dtype must be f32 for bf16, got s32"),
        (INTEGERS | {"acc_dtype": "f32"}, "spec: acc_dtype must be s32 for s8, got f32"),
        ({"a_major": "n"}, "spec: a_major must be one of k, m, got 'n'"),
        ({"b_major": "m"}, "spec: b_major must be one of k, n, got 'm'"),
        (
            {"a_dtype": "f16"},
            "spec: a_dtype and b_dtype must be one type, got f16 and bf16; convert one of them",
        ),
        (
            {"a_dtype": "e4m3", "b_dtype": "s8"},
            "spec: a_dtype and b_dtype must be one type (8 bits: both floats or both integers), "
            "got e4m3 and s8; convert one of them",
        ),
    ],
)
def test_specs_that_cannot_be_built(fields, message):
    assert message_of(lambda: MatmulSpec(**{**SPEC, **fields})) == f"error: {message}"


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("", "pipeline: expected a pass name at column 1, got the end in ''"),
        ("tiling,,", "pipeline: expected a pass name at column 8, got ',' in 'tiling,,'"),
        ("tiling;", "pipeline: expected ',' or the end at column 7, got ';' in 'tiling;'"),
        (
            "tiling{tile=64x64x64",
            "pipeline: expected options as {name=value name=value} at column 7, got '{' in "
            "'tiling{tile=64x64x64'",
        ),
        ("polish", f"pipeline: unknown pass 'polish'; use one of {PASS_NAMES}, lower-to-nvvm"),
        ("tilling", "pipeline: unknown pass 'tilling'; did you mean 'tiling'?"),
        ("tma_insertion", "pipeline: unknown pass 'tma_insertion'; did you mean 'tma-insertion'?"),
        ("tiling{tile}", "pipeline: tiling: an option must be name=value, got 'tile'"),
        (
            "tiling{tiles=1}",
            "tiling: unknown option 'tiles'; it takes tile, mma, operands, threads, warps, order, "
            "group, kind, swap, lanes",
        ),
        (
            "tiling{mma=wgmma.mma_async}",
            "mma: sm_100a has none called 'wgmma.mma_async'; use one of tcgen05.mma, "
            "tcgen05.mma+fma, tcgen05.mma+cvt, tcgen05.mma+cvt+fma, tcgen05.mma+bf16x9, "
            "tcgen05.mma+3xtf32, mma.sync, mma.sync+3xtf32, mma.sync+bf16x9, fma",
        ),
        (
            "tiling{mma=hmma}",
            "tiling: option mma must be auto or the name of an MMA, as wgmma.mma_async, got 'hmma'",
        ),
        (
            "tiling{tile=128x128}",
            "tiling: option tile must be auto or BMxBNxBK, as 128x128x64, got '128x128'",
        ),
        ("tiling,tma-insertion{box=4d}", "tma-insertion: option box must be 2d or 3d, got '4d'"),
        (
            "tiling,swizzle-selection{force=256B}",
            "swizzle-selection: option force must be widest, none, 32B, 64B or 128B, got '256B'",
        ),
        (
            "tiling,expand-loops{reads=columns}",
            "expand-loops: option reads must be rows or matrices, got 'columns'",
        ),
        (
            "tiling,tma-insertion,epilogue-staging,expand-loops{reads=matrices}",
            "tile.staged_store: expand-loops: reads=matrices must come with tile.store, got "
            "tile.staged_store; leave reads out",
        ),
        (
            "tma-insertion",
            "tma-insertion: the module must hold one tile.kernel, got 0; run tiling first",
        ),
        (
            "tiling,tiling",
            "tiling: the module must hold one tile.matmul, got 0; "
            "run normalize first, and tiling once",
        ),
    ],
)
def test_pipelines_that_cannot_be_run(pipeline, message):
    found = message_of(lambda: compile_matmul(MatmulSpec(**SPEC), pipeline=pipeline))
    assert found == f"error: {message}"


@pytest.mark.parametrize(
    ("tile", "message"),
    [
        ("96x128x64", "tile M must be a multiple of 64 up to 256, got 96"),
        ("512x128x64", "tile M must be a multiple of 64 up to 256, got 512"),
        (
            "128x100x64",
            "tile N must be a multiple of 16 up to 256 for an MMA of 128 rows, got 100",
        ),
        ("64x12x64", "tile N must be a multiple of 8 up to 256 for an MMA of 64 rows, got 12"),
        ("128x128x40", "tile K must be a multiple of 16 up to 256 for bf16, got 40"),
        (
            "256x256x256",
            "tile 256x256x256 needs 262144 bytes of shared memory for A and B and 1024 for "
            "barriers, over the 232448 of sm_100a; make the tile smaller",
        ),
        (
            "192x256x64",
            "tile 192x256 needs 768 tensor-memory columns, over the 512 of sm_100a; "
            "make the tile smaller",
        ),
    ],
)
def test_tiles_that_no_mma_or_memory_can_hold(tile, message):
    pipeline = f"tiling{{tile={tile}}}"
    found = message_of(lambda: compile_matmul(MatmulSpec(**SPEC), pipeline=pipeline))
    assert found == f"error: tile.matmul: {message}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"target": "sm_70"},
            "target: unknown chip 'sm_70'; use one of " + ", ".join([*TARGETS, *GPUS]),
        ),
        (
            {"preset": "v9"},
            f"preset: unknown name 'v9'; use one of {PRESET_NAMES}",
        ),
        (
            {"stop_after": "vectorize", "pipeline": "tiling,tma-insertion"},
            "stop-after: 'vectorize' is not in the pipeline; "
            "use one of normalize, tiling, tma-insertion",
        ),
        (
            {"stop_after": "normalize"},
            "assign-threads: the module must hold one tile.kernel, got 0; run tiling first",
        ),
    ],
)
def test_options_that_cannot_be_met(options, message):
    assert message_of(lambda: compile_matmul(MatmulSpec(**SPEC), **options)) == f"error: {message}"


def test_more_tiles_than_a_grid_can_have_are_refused():
    spec = MatmulSpec(1, 2**31 - 1, 1)
    assert message_of(lambda: compile_matmul(spec, pipeline="tiling", until="mlir")) == (
        "error: tile.kernel: a grid can have 65535 CTAs along N, got 16777216; "
        "use a larger tile or persistence"
    )
    assert "persistence" in compile_matmul(spec, until="mlir").pipeline


def test_tiles_are_counted_with_a_step_behind_the_last_one_in_32_bits():
    """A CTA of a persistent kernel adds the grid to the number of its tile, and then compares."""
    passes = "tiling{tile=64x64x64},tma-insertion,swizzle-selection,pipelining"
    pipeline = f"{passes},warp-specialization,persistence{{ctas=132}}"
    spec = MatmulSpec(m=64, n=64, k=64, batch=2**30 + 1)
    assert "persistence" not in compile_matmul(spec, until="mlir").pipeline
    with pytest.raises(CompileError, match=r"at most 1073741824 tiles .* got 1073741825x1; use a"):
        compile_matmul(spec, pipeline=pipeline, until="mlir")


@pytest.mark.parametrize("path", [Path("nowhere.mlir"), "nowhere.mlir"])
def test_a_file_that_is_not_there_is_named(path):
    found = message_of(lambda: compile_matmul(path))
    assert found == (
        "error: nowhere.mlir: must be a readable .mlir file, got No such file or directory;"
        " check the path"
    )


@pytest.mark.parametrize(
    ("source", "got"),
    [
        ("func.func @f() { return }", "the text of a module; make a LinalgText of it"),
        (3, "int; compile_module takes a module of torch"),
    ],
)
def test_what_is_no_source_is_told_so(source, got):
    rule = "error: compile: source must be a MatmulSpec, a path or a LinalgText"
    assert message_of(lambda: compile_matmul(source)) == f"{rule}, got {got}"


def test_a_file_that_does_not_parse_says_where(tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @f( {")
    found = message_of(lambda: compile_matmul(path))
    assert found == f"{path}:1:14: error: expected non-function type"


def test_a_file_keeps_its_name_in_every_alphabet(tmp_path):
    path = tmp_path / 'größe \\ "x".mlir'
    path.write_text("func.func @f( {")
    found = message_of(lambda: compile_matmul(path))
    assert found == f"{path}:1:14: error: expected non-function type"
    path.write_text("func.func @f() {\n  return\n}\n")
    found = message_of(lambda: compile_matmul(path))
    rule = "func.func: the function must hold one linalg.matmul, got 0; multiply in it"
    assert found == f"{path}:1:1: error: {rule}"


def test_an_error_that_mlir_gives_no_place_names_the_file(tmp_path):
    """The region of linalg.matmul, which MLIR makes itself, extends integers without a sign only"""
    text = HEAD.replace("bf16", "ui8") + FILL + SUM.replace("bf16", "ui8") + RETURN
    path = tmp_path / "m.mlir"
    path.write_text(text.replace("f32", "i32").replace("0.0", "0").replace("1.0", "1"))
    found = message_of(lambda: compile_matmul(path))
    rule = "op operand #0 must be signless-fixed-width-integer-like, but got 'ui8'"
    assert found == f"{path}: error: 'arith.extsi' {rule}"


HEAD = """
func.func @f(%a: tensor<64x32xbf16>, %b: tensor<32x48xbf16>) -> tensor<64x48xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<64x48xf32>
"""
SUM = """
  %sum = linalg.matmul ins(%a, %b : tensor<64x32xbf16>, tensor<32x48xbf16>)
    outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
"""
FILL = (
    "  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>\n"
)
RETURN = "  return %sum : tensor<64x48xf32>\n}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEAD + FILL.replace("%zero", "%one") + SUM + RETURN,
            ":8:10: error: linalg.matmul: the accumulator must start as linalg.fill of 0; "
            "add C afterwards",
        ),
        (
            HEAD + FILL + SUM + "  %s = math.atan %sum : tensor<64x48xf32>\n"
            "  return %s : tensor<64x48xf32>\n}\n",
            ":10:8: error: math.atan: not one of the ops that a kernel is made of "
            "(docs/passes/normalize.md); compute it outside the kernel",
        ),
        (
            HEAD + FILL + SUM + "  return %empty : tensor<64x48xf32>\n}\n",
            ":5:12: error: tensor.empty: not an elementwise op that an epilogue can take; "
            "write it as a linalg.generic",
        ),
        (
            HEAD.replace("bf16", "f80") + FILL + SUM.replace("bf16", "f80") + RETURN,
            ":8:10: error: linalg.matmul: A must hold one of f16, bf16, f32, f8E4M3FN, f8E5M2, "
            "i8, f64, got f80",
        ),
        (
            HEAD.replace("bf16", "i8") + FILL + SUM.replace("bf16", "i8") + RETURN,
            ":8:10: error: linalg.matmul: must accumulate in i32, got f32; convert the result",
        ),
        (
            HEAD + "  return %empty : tensor<64x48xf32>\n}\n",
            ":2:1: error: func.func: the function must hold one linalg.matmul, got 0; multiply in "
            "it",
        ),
    ],
)
def test_normalize_refuses_with_the_place_and_the_reason(tmp_path, text, message):
    path = tmp_path / "m.mlir"
    path.write_text(text)
    found = message_of(lambda: compile_matmul(path, until="mlir", stop_after="normalize"))
    assert found == f"{path}{message}"


def product(name, a, b, n=32):
    return f"""  %{name} = linalg.matmul ins(%{a}, %{b} : tensor<32x32xbf16>, tensor<32x{n}xbf16>)
    outs(%init{n} : tensor<32x{n}xf32>) -> tensor<32x{n}xf32>
"""


SEVERAL = """
func.func @f(%a: tensor<32x32xbf16>, %b: tensor<32x32xbf16>, %w: tensor<32x64xbf16>)
    -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %v = tensor.empty() : tensor<32x64xf32>
  %init32 = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %init64 = linalg.fill ins(%zero : f32) outs(%v : tensor<32x64xf32>) -> tensor<32x64xf32>
"""
ADD = "  %c = arith.addf %x, %y : tensor<32x32xf32>\n"
ROUND = "  %r = arith.truncf %x : tensor<32x32xf32> to tensor<32x32xbf16>\n"


@pytest.mark.parametrize(
    ("body", "returned", "message"),
    [
        (
            product("x", "a", "b") + product("y", "b", "b") + ADD,
            "c",
            "11:8: error: linalg.matmul: two products must have one A, got another; "
            "compile them apart",
        ),
        (
            product("x", "a", "b") + product("y", "a", "w", 64),
            "x",
            "11:8: error: linalg.matmul: B's of one A must be alike, got tensor<32x32xbf16> and "
            "tensor<32x64xbf16>; compile them apart",
        ),
        (
            product("x", "a", "b") + product("y", "a", "a"),
            "x",
            "13:3: error: func.return: must return what both products make, got one unread; "
            "remove it",
        ),
        (
            product("x", "a", "b") + product("y", "a", "a") + product("z", "b", "b") + ADD,
            "c",
            "2:1: error: func.func: must hold one product or two of one A, got 3; split it",
        ),
        (
            product("x", "a", "b") + ROUND + product("y", "r", "b"),
            "y",
            "12:8: error: linalg.matmul: must hold one product or two of one A, got one of "
            "another's result; compile it apart",
        ),
    ],
)
def test_products_that_no_kernel_takes_together_are_refused(tmp_path, body, returned, message):
    path = tmp_path / "m.mlir"
    path.write_text(f"{SEVERAL}{body}  return %{returned} : tensor<32x32xf32>\n}}\n")
    found = message_of(lambda: compile_matmul(path, until="mlir", stop_after="normalize"))
    assert found == f"{path}:{message}"
