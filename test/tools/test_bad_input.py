"""Bad input to the real compiler: one clear message, no traceback, no partial file.

Status 2 for a spec field, option or name that can't be taken, 1 for what does not compile.
"""

import dataclasses
import re

import numpy as np
import pytest

from tilewright.compiler.driver import choose_pipeline
from tilewright.compiler.pipeline import LOWERING_NAMES, parse_pipeline
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import OptionError

SPEC = ("--m", "64", "--n", "48", "--k", "32")
MATMUL = """func.func @f(%a: tensor<4x16xf16>, %b: tensor<8x16xf16>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                     affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<4x16xf16>, tensor<8x16xf16>)
    outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}
"""


def assert_refused(ran, fragment, status=1):
    assert (ran.status, ran.out) == (status, "")
    lines = [line for line in ran.err.splitlines() if "remark: " not in line]
    assert len(lines) == 1, ran.err
    assert re.match(r"(\S+:\d+:\d+: )?error: \S", lines[0])
    assert not lines[0].endswith(".")
    assert fragment in lines[0]


@pytest.mark.parametrize("command", ["compile", "run"])
@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (("--m", "0", "--n", "48", "--k", "32"), "m must be 1 to 2147483647, got 0"),
        (("--m", "64", "--n", "-3", "--k", "32"), "n must be 1 to 2147483647, got -3"),
        (("--m", "64", "--n", "48", "--k", "9" * 30), "k must be 1 to 2147483647, got 999"),
        (
            ("--m", "2147483647", "--n", "1", "--k", "2147483647"),
            "a must have at most 140737488355328 bytes, got 9223372028264841218",
        ),
        ((*SPEC, "--a-dtype", "int7"), "a_dtype must be one of"),
        ((*SPEC, "--c-dtype", "f8"), "c_dtype must be one of"),
        ((*SPEC, "--acc-dtype", "f16"), "acc_dtype must be one of f32, s32, f64, got 'f16'"),
        ((*SPEC, "--b-major", "m"), "b_major must be one of k, n, got 'm'"),
        (
            (*SPEC, "--a-dtype", "f16"),
            "a_dtype and b_dtype must be one type, got f16 and bf16; convert one of them",
        ),
        (
            (*SPEC, "--target", "sm_42"),
            "unknown chip 'sm_42'; use one of sm_100a, sm_90a, sm_80",
        ),
        ((*SPEC, "--preset", "v99"), "unknown name 'v99'; use one of"),
        ((*SPEC, "--pipeline", "tiling{tile=128x128x64"), "pipeline: expected"),
        ((*SPEC, "--pipeline", "tiling,,tma-insertion"), "pipeline: expected a pass name at"),
        ((*SPEC, "--pipeline", "polish"), "pipeline: unknown pass 'polish'; use one of normalize"),
        ((*SPEC, "--pipeline", "tiling{size=3}"), "tiling: unknown option 'size'; it takes tile"),
        ((*SPEC, "--pipeline", "tiling{tile}"), "an option must be name=value, got 'tile'"),
        ((*SPEC, "--pipeline", "tiling{tile=0x64x64}"), "option tile must be auto or BMxBNxBK"),
        ((*SPEC, "--stop-after", "polish"), "'polish' is not in the pipeline; use one of"),
    ],
)
def test_what_is_no_spec_or_option_is_wrong_usage(command, words, fragment, tilewright, tmp_path):
    place = ("-o", tmp_path / "made")
    assert_refused(tilewright(command, *words, *place), fragment, status=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["compile", "run"])
@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        ((*SPEC, "--pipeline", "tiling{tile=96x64x64}"), "tile M must be"),
        ((*SPEC, "--pipeline", "tiling{tile=128x100x64}"), "tile N must be a multiple of 16"),
        ((*SPEC, "--pipeline", "tiling{tile=128x512x64}"), "tile N must be a multiple of 16 up to"),
        ((*SPEC, "--pipeline", "tiling{tile=128x128x40}"), "tile K must be a multiple of 16"),
        ((*SPEC, "--pipeline", "tma-insertion"), "run tiling first"),
        (("nowhere.mlir",), "nowhere.mlir: must be a readable .mlir file"),
        (("k.ptx",), "must be a readable .mlir file, got PTX; run it by `tilewright emulate` with"),
        (
            ("model.py",),
            "got Python; `tilewright model check` takes a model",
        ),
    ],
)
def test_what_the_compiler_refuses_is_one_line(command, words, fragment, tilewright, tmp_path):
    place = ("-o", tmp_path / "made")
    assert_refused(tilewright(command, *words, *place), fragment)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("module { func.func @f( }", ":1:23: error: expected"),
        ("", "must hold one func.func, got 0"),
        ("func.func @f() { return }", "must hold one linalg.matmul, got 0"),
        (MATMUL.replace("tensor<8x16xf16>)\n", "tensor<8x15xf16>)\n"), "error: "),
        (MATMUL.replace("f16", "f64"), "error: "),
        ("\x00\x01\x02", "error: "),
        ("sea.shells() : () -> ()", "error: "),
    ],
)
@pytest.mark.parametrize("command", [("compile",), ("run",), ("opt", "--passes", "normalize")])
def test_a_file_that_is_no_matmul_is_refused(command, text, fragment, tilewright, tmp_path):
    source = tmp_path / "bad.mlir"
    source.write_text(text)
    assert_refused(tilewright(command[0], source, *command[1:]), fragment)


@pytest.mark.parametrize("command", [("compile",), ("opt", "--passes", "normalize")])
def test_bytes_that_are_no_text_are_refused(command, tilewright, tmp_path):
    source = tmp_path / "noise.mlir"
    source.write_bytes(bytes(range(128, 256)))
    assert_refused(tilewright(command[0], source, *command[1:]), "must be a readable .mlir file")


def test_a_bundle_has_no_name_of_another_kind(tilewright, tmp_path):
    ran = tilewright("run", *SPEC, "-o", tmp_path / "k.ptx")
    assert_refused(ran, "-o must name a folder or a .zip, which a bundle is, got", status=2)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_is_not_compiled_again(tilewright):
    fragment = "must be a readable .mlir file, got what may be a bundle, which is compiled already"
    assert_refused(tilewright("compile", "any.zip"), fragment)


def test_a_folder_as_a_file_is_refused(tilewright, tmp_path):
    assert_refused(tilewright("compile", tmp_path), "must be a readable .mlir file")
    assert_refused(
        tilewright("opt", tmp_path, "--passes", "tiling"), "must be a readable .mlir file"
    )


@pytest.mark.parametrize("words", [("compile", "--emit", "cubin"), ("run",)])
def test_a_missing_ptxas_is_refused_with_the_cure(words, tilewright, tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_PTXAS", str(tmp_path / "none"))
    ran = tilewright(*words, *SPEC, "-o", tmp_path / "made")
    assert_refused(ran, "TILEWRIGHT_PTXAS: must name a file")
    assert "pip install" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["run", "ladder --presets v1a"])
def test_sizes_beyond_memory_are_refused_before_inputs_are_made(command, tilewright):
    ran = tilewright(*command.split(), "--m", 1073741824, "--n", 64, "--k", 64)
    assert ran.status == 1
    assert "(2816.0 GiB); make the matmul smaller" in ran.out + ran.err


def test_ptx_needs_no_ptxas(tilewright, tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_PTXAS", str(tmp_path / "none"))
    assert ".target sm_100a" in tilewright("compile", *SPEC).out


def test_a_place_that_turns_out_unwritable_is_named_by_its_own_name(tilewright):
    ran = tilewright("compile", *SPEC, "-o", "/proc/kernel.ptx")
    assert (ran.status, ran.out) == (1, "")
    assert "/proc/kernel.ptx: " in ran.err


def test_a_hand_written_file_compiles(tilewright, tmp_path):
    source = tmp_path / "good.mlir"
    source.write_text(MATMUL)
    ran = tilewright("compile", source, "--emit", "cubin", "-o", tmp_path / "k.cubin", "--json")
    assert ran.status == 0, ran.err
    assert ran.json["manifest"]["spec"] is None
    assert (tmp_path / "k.cubin").read_bytes().startswith(b"\x7fELF")


def test_opt_prints_the_ir_that_the_passes_leave(tilewright, tmp_path):
    source = tmp_path / "good.mlir"
    source.write_text(MATMUL)
    ran = tilewright("opt", source, "--passes", "normalize")
    assert ran.status == 0
    assert '"tile.matmul"' in ran.out
    assert "linalg.matmul" not in ran.out
    assert tilewright("opt", source, "--passes", "normalize", "--json").json["text"] in ran.out


def test_opt_lists_the_passes_in_order(tilewright):
    ran = tilewright("opt", "--list-passes", "--json")
    names = [row["name"] for row in ran.json["passes"]]
    assert names[0] == "normalize"
    assert names[-1] == "lower-to-nvvm"
    assert "swizzle-selection" in tilewright("opt", "--list-passes").out


@pytest.mark.parametrize("stop_after", ["normalize", "tiling", "tma-insertion"])
def test_stop_after_shows_the_ir_of_that_pass(stop_after, tilewright):
    ran = tilewright("compile", *SPEC, "--emit", "mlir", "--stop-after", stop_after)
    assert ran.status == 0, ran.err
    assert ('"tile.kernel"' in ran.out) == (stop_after != "normalize")
    assert ('"tile.tma_load"' in ran.out) == (stop_after == "tma-insertion")


def test_print_after_all_shows_every_pass(tilewright):
    ran = tilewright("compile", *SPEC, "--preset", "v2a", "--print-after-all")
    names = re.findall(r"^// ---- after (\S+) ----$", ran.err, re.MULTILINE)
    schedule = ["normalize", "tiling", "tma-insertion", "swizzle-selection"]
    assert names == [*schedule, *LOWERING_NAMES]
    assert ran.out.startswith("//\n// Generated by LLVM NVPTX Back-End")


def test_print_after_all_shows_every_pass_of_a_chosen_schedule_once(tilewright):
    ran = tilewright("compile", *SPEC, "--print-after-all")
    names = re.findall(r"^// ---- after (\S+) ----$", ran.err, re.MULTILINE)
    chosen = parse_pipeline(choose_pipeline(MatmulSpec(64, 48, 32), "sm_100a"))
    assert names == ["normalize", *(call.name for call in chosen), *LOWERING_NAMES]


def test_opt_without_passes_prints_what_it_parsed_and_parses_what_it_printed(tilewright, tmp_path):
    source, again = tmp_path / "good.mlir", tmp_path / "again.mlir"
    source.write_text(MATMUL)
    assert tilewright("opt", source, "-o", again).status == 0
    ran = tilewright("opt", again)
    assert ran.status == 0
    assert "linalg.matmul" in ran.out
    assert ran.out == again.read_text()


@pytest.mark.parametrize("prefix", ["normalize", "normalize,tiling{tile=64x16x64},tma-insertion"])
def test_opt_without_passes_prints_our_dialects_as_the_passes_left_them(
    prefix, tilewright, tmp_path
):
    source, left = tmp_path / "good.mlir", tmp_path / "left.mlir"
    source.write_text(MATMUL)
    assert tilewright("opt", source, "--passes", prefix, "-o", left).status == 0
    assert '"tile.' in left.read_text()
    assert tilewright("opt", left).out == left.read_text()


def test_opt_without_passes_refuses_what_does_not_verify(tilewright, tmp_path):
    source, left = tmp_path / "good.mlir", tmp_path / "left.mlir"
    source.write_text(MATMUL)
    tilewright("opt", source, "--passes", "normalize", "-o", left)
    left.write_text(left.read_text().replace("tensor<8x16xf16>", "tensor<8x32xf16>"))
    assert_refused(tilewright("opt", left), "tile.matmul")


OF_NO_FIELD = (1.5, "64", "x", b"64", None, [64], {"a": 1}, np.int64(64), object(), 2**70, -1)


@pytest.mark.parametrize("field", dataclasses.fields(MatmulSpec), ids=lambda each: each.name)
def test_a_field_of_a_spec_has_its_own_kind_or_is_refused(field):
    kind = {"tuple[str, ...]": "tuple"}.get(field.type, field.type)
    for value in (*OF_NO_FIELD, "", 0, False, []):
        try:
            spec = MatmulSpec(**{"m": 64, "n": 32, "k": 96, field.name: value})
        except OptionError as error:
            assert str(error).startswith("error: spec: ") and "\n" not in str(error)
        else:
            assert type(getattr(spec, field.name)).__name__ == kind
            assert isinstance(hash(spec), int)
