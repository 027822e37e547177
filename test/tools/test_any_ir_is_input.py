"""A module that a pass left, written to a file, changed by hand or not, goes on from there.

The dump goes on as the compilation would have; a change in it shows in what is computed.
"""

import re

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import LOWERING_NAMES, all_presets, parse_pipeline
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

SPEC = MatmulSpec(256, 128, 192)
ROLES = "tiling{tile=128x64x64},tma-insertion,pipelining{stages=4},warp-specialization"
PRESET = "v6"
CALLS = parse_pipeline(all_presets()[PRESET])
PASSES = [*(call.name for call in CALLS), *LOWERING_NAMES]


def dump(path, stop_after, spec=SPEC, **how):
    """A file with the module after a pass."""
    path.write_text(compile_matmul(spec, stop_after=stop_after, until="mlir", **how).mlir)
    return path


def ptx(source, **how):
    return compile_matmul(source, until="ptx", **how).ptx


@pytest.fixture(scope="module")
def whole():
    """The PTX of the preset."""
    return ptx(SPEC, preset=PRESET)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", PASSES)
def test_a_dump_goes_on_as_the_compilation_would_have(name, whole, tmp_path):
    path = dump(tmp_path / "dump.mlir", name, preset=PRESET)
    left = CALLS[PASSES.index(name) + 1 :]
    assert ptx(path, pipeline=",".join(map(str, left)) or None) == whole
    if name in PASSES[::3]:
        assert ptx(path) == ptx(SPEC, preset=PRESET, stop_after=name)


def test_a_normalized_dump_gets_the_schedule_of_its_source(tmp_path):
    spec = MatmulSpec(256, 96, 64, c_dtype="f32", b_major="n")
    assert ptx(dump(tmp_path / "dump.mlir", "normalize", spec)) == ptx(spec)


def test_stopping_after_the_last_pass_prints_what_it_leaves():
    named = compile_matmul(SPEC, preset="v1a", stop_after="lower-to-nvvm", until="mlir").mlir
    assert "gpu.module" in named
    assert named == compile_matmul(SPEC, preset="v1a", until="mlir").mlir


def edited(path, *changes):
    """The file with each pattern replaced, everywhere it stands."""
    text = path.read_text()
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text)
        assert count, pattern
    path.write_text(text)
    return path


def test_a_kernel_with_other_stages_by_hand_is_right(tilewright, tmp_path):
    small = MatmulSpec(128, 64, 256)
    path = dump(tmp_path / "k.mlir", "warp-specialization", small, pipeline=ROLES)
    edited(path, ("ring<4 : i64, ", "ring<2 : i64, "))
    ran = tilewright("run", path, "--m", "128", "--n", "64", "--k", "256", "--json")
    assert ran.status == 0, ran.err
    assert ran.json["reference"] == "torch's a @ b.T in float64"


@pytest.mark.parametrize(
    ("stop_after", "change"),
    [
        ("tiling", ("constant 3 : index", "constant 2 : index")),
        ("lower-to-nvvm", (r"mlir.constant\(3 : index\)", "mlir.constant(2 : index)")),
    ],
)
def test_a_kernel_that_leaves_out_a_k_step_is_found_wrong(stop_after, change, tilewright, tmp_path):
    path = edited(dump(tmp_path / "k.mlir", stop_after, pipeline="tiling"), change)
    ran = tilewright("run", path)
    assert ran.status == 1
    assert "reference  the kernel's own product" in ran.out
    assert "FAIL  " in ran.out


F32 = """func.func @f(%x: tensor<64x32xf32>, %w: tensor<32x48xf32>) -> tensor<64x48xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x48xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %s = linalg.matmul ins(%x, %w : tensor<64x32xf32>, tensor<32x48xf32>)
    outs(%i : tensor<64x48xf32>) -> tensor<64x48xf32>
  return %s : tensor<64x48xf32>
}"""


@pytest.mark.parametrize("stop_after", ["normalize", "lower-to-nvvm"])
def test_a_dump_of_a_torch_module_keeps_what_its_arguments_are(stop_after, tmp_path):
    source = LinalgText(F32, "f", ("x", "w"), column_major=frozenset([1]))
    direct = compile_matmul(source, pipeline="tiling").manifest
    path = dump(tmp_path / "dump.mlir", stop_after, source, pipeline="normalize,tiling")
    pipeline = "tiling" if stop_after == "normalize" else None
    resumed = compile_matmul(path, pipeline=pipeline).manifest
    assert resumed["arguments"] == direct["arguments"] == ["x", "w"]
    assert resumed["tensors"] == direct["tensors"]
    assert [each["argument"]["transposed"] for each in direct["tensors"][:2]] == [False, True]


KERNEL, LOWERED, MATMUL = "tiling", "lower-to-nvvm", "normalize"
TARGET = r'tile.target = "sm_100a"'
REFUSALS = [
    (KERNEL, {"pipeline": "tiling"}, (), r"pipeline: a module that is through tiling takes passes "
     r"that come after it \(tma-insertion, .*\), got tiling; leave it out"),
    (LOWERED, {"pipeline": "persistence"}, (), r"pipeline: a module that is through lower-to-nvvm "
     r"takes passes that come after it \(none\), got persistence; leave it out"),
    (KERNEL, {"preset": "v3"}, (), "preset: a kernel has a schedule already, got another whole one;"
     " name the passes that are left by a pipeline"),
    (KERNEL, {"stop_after": "tiling"}, (), "stop-after: 'tiling' is not in the pipeline; no pass is"
     " left to run"),
    (KERNEL, {}, (" attributes {.*?}", ""), "builtin.module: a kernel's module must name its "
     'chip, as tile.target = "sm_100a", got none; add it, or give --target'),
    (KERNEL, {"target": "sm_90a"}, (), "target: must be sm_100a, which the kernel is made for, got "
     "sm_90a; compile its source for sm_90a"),
    (KERNEL, {}, (TARGET, TARGET + ", tile.size = 1"), "builtin.module: attributes must be .*, got "
     r"tile.size = 1 : i64; remove it"),
    (KERNEL, {}, (TARGET, TARGET + ", tile.arguments = {names = []}"), "builtin.module: "
     r"tile.arguments must be \{names = .*\}, got \{names = \[\]\}"),
    (KERNEL, {}, (r"\n}", "\nfunc.func private @f()\n}"), "func.func: a kernel must be alone in its"
     " module, got another op; remove it"),
    (LOWERED, {}, (', tile.launch = ".*"', ""), "gpu.module: one llvm.func must say by "
     "tile.launch how it is launched, got 0; lower a tile.kernel, which writes it"),
    (LOWERED, {}, ('tile.launch = ".*"', "tile.launch = 3"), "llvm.func: tile.launch must be a text"
     " of JSON, got 3 : i64"),
    (LOWERED, {}, ('tile.launch = ".', 'tile.launch = "'), "llvm.func: tile.launch must be a text"
     " of JSON, got Extra data.*"),
    (LOWERED, {}, ("tile.launch = ", "tile.launches = "), "llvm.func: attributes: nothing reads "
     "'tile.launches'; take it off the op"),
    (LOWERED, {}, (r"llvm.add (%\w+, %\w+)", r"llvm.add \1 {fast}"), "llvm.add: attributes: "
     "nothing reads 'fast'; take it off the op"),
    (LOWERED, {}, (TARGET, TARGET + ', tile.math = "fast"'), "builtin.module: attributes must be "
     'tile.target, .*, got tile.math = "fast"; remove it'),
    (KERNEL, {}, (TARGET, TARGET + ", gpu.container_module"), "builtin.module: attributes must be "
     "tile.target, .*, got gpu.container_module = unit; remove it"),
    (LOWERED, {}, (r"reqntid = array<i32: \d+", "reqntid = array<i32: 32"), "llvm.func: nvvm."
     r"reqntid must be the block of tile.launch, \[\d+, 1, 1\], got \[32, 1, 1\]"),
    (LOWERED, {}, ("nvvm.kernel", "nvvm.kernel, nvvm.cluster_dim = array<i32: 2, 1, 1>"), "llvm."
     r"func: nvvm.cluster_dim must be the cluster of tile.launch, \[1, 1, 1\], got \[2, 1, 1\]"),
    (LOWERED, {}, ("entry", "entries"), "llvm.func: tile.launch: must have the field 'entry', got "
     "none"),
    (LOWERED, {}, (r"@matmul\w+", "@other"), "llvm.func: tile.launch.entry: must be the name of "
     r"the function, 'other', got 'matmul_\w+'"),
    (LOWERED, {}, ("inputs.22: .0, 1.", r"inputs\\22: [0, 2]"), "llvm.func: tile.launch.source."
     r"inputs: must be below 2, got \[0, 2\]"),
    (LOWERED, {}, ("sm_100a.>", 'sm_103a">'), "gpu.module: targets must be .*sm_100a.*,"
     " the chip of tile.target, got .*sm_103a.*"),
    (MATMUL, {}, ("return ", "%9 = arith.constant 1 : i32\nreturn "), "func.func: a function of"
     " a tile.matmul must hold it and the return of its result, got tile.matmul, arith.constant, "
     "func.return; take the rest out"),
    (MATMUL, {}, ('a_major = "k"', 'a_major = "k", fast = 1'), "tile.matmul: attributes must be "
     "a_major, b_major, got fast = 1 : i64; remove it"),
    (MATMUL, {}, ("arith.truncf (%\\w+)", r"arith.truncf \1 {predicate = 3 : i64}"), "arith."
     "truncf: attributes must be roundingmode, fastmath, got predicate = 3 : i64; remove it"),
    (MATMUL, {}, (r'"tile.yield"\((%\w+)\) :', r'"tile.yield"(\1) {value = 1} :'), "tile.yield: "
     "attributes must be none, got value = 1 : i64; remove it"),
    (KERNEL, {}, ("arith.truncf (%\\w+)", r"arith.truncf \1 {predicate = 3 : i64}"), "arith."
     "truncf: attributes: nothing reads 'predicate'; take it off the op"),
    (MATMUL, {}, (r"\n}", "\nfunc.func private @f()\n}"), "func.func: the function must be alone in"
     " its module, got this; remove it"),
]  # fmt: skip


@pytest.mark.parametrize(("level", "how", "change", "rule"), REFUSALS)
def test_what_a_module_lacks_or_has_too_much_is_refused(level, how, change, rule, tmp_path):
    path = dump(tmp_path / "k.mlir", level, pipeline="tiling")
    if change:
        edited(path, change)
    with pytest.raises(CompileError) as caught:
        ptx(path, **how)
    assert re.fullmatch(rf"({re.escape(str(path))}:\d+:\d+: )?error: {rule}", str(caught.value))
