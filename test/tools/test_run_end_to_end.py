"""`tilewright run` from the command line to the verdict, on the real compiler and emulator."""

import json
import re
import subprocess
import sys

import pytest

from tilewright.compiler.bundle_writer import write_bundle
from tilewright.runtime import read_bundle

PREFIXES = ("tiling", "tma-insertion", "swizzle-selection")
SHAPES = {
    "aligned": ("--m", "128", "--n", "192", "--k", "192"),
    "ragged": ("--m", "77", "--n", "33", "--k", "51"),
    "tall": ("--m", "300", "--n", "40", "--k", "136"),
}


@pytest.mark.sweep(18)
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_prefix_passes(shape, prefix, tilewright):
    ran = tilewright("run", *SHAPES[shape], "--stop-after", prefix, "--json")
    assert ran.status == 0, ran.err
    assert ran.json["comparison"]["mismatches"] == 0
    assert ran.json["resources"]["spill_store_bytes"] == 0


@pytest.mark.sweep(12)
@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize(("a_major", "b_major"), [("m", "k"), ("k", "n"), ("m", "n")])
def test_each_operand_passes_alone_against_an_identity(a_major, b_major, operand, tilewright):
    majors = ("--a-major", a_major, "--b-major", b_major)
    ran = tilewright("run", *SHAPES["aligned"], *majors, "--identity", operand, "--seed", "3")
    assert ran.status == 0, ran.out + ran.err


def test_a_saved_bundle_gives_the_same_output_again(tilewright, tmp_path):
    place = tmp_path / "kernel.zip"
    made = tilewright("run", *SHAPES["ragged"], "-o", place, "--json").json
    again = tilewright("run", place, "--json").json
    assert again["ok"] is True
    assert again["comparison"] == made["comparison"]


def test_a_kernel_that_takes_a_for_b_fails(tilewright, tmp_path):
    place = tmp_path / "kernel.zip"
    square = ("--m", "64", "--n", "64", "--k", "96", "--preset", "kernel4")
    tilewright("compile", *square, "--emit", "bundle", "-o", place)
    bundle = read_bundle(place)
    ptx, swapped = re.subn(
        r"(mov\.b64 \t%rd\d+, \w+_param_)([01]);",
        lambda found: f"{found[1]}{1 - int(found[2])};",
        bundle.ptx,
    )
    assert swapped == 2
    write_bundle(place, bundle.manifest, ptx, bundle.cubin)
    ran = tilewright("run", place)
    assert ran.status == 1
    assert "FAIL  " in ran.out


def test_a_saved_bundle_runs_without_mlir_and_llvm(tilewright, tmp_path):
    place = tmp_path / "kernel.zip"
    tilewright("compile", *SHAPES["ragged"], "--emit", "bundle", "-o", place)
    code = (
        "import sys\n"
        "for name in ('mlir', 'torch_mlir', 'llvmlite', 'torch'): sys.modules[name] = None\n"
        "import numpy as np\n"
        "from tilewright.runtime import load\n"
        "kernel = load(sys.argv[1])\n"
        "a, b = np.full((77, 51), 0x3F80, np.uint16), np.full((33, 51), 0x4000, np.uint16)\n"
        "c = np.zeros((77, 33), np.uint16)\n"
        "kernel.run({'a': a, 'b': b, 'c': c})\n"
        "assert (c == 0x42CC).all(), c  # 51 times 1 times 2 = 102 in bf16\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(place)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_installed_command_prints_one_json_object(tmp_path):
    command = [sys.executable, "-m", "tilewright.tools.main", "run", *SHAPES["ragged"], "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout)["ok"] is True


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("size", [(512, 256, 192), (300, 264, 136)], ids=["demo", "ragged"])
def test_a_large_shape_passes_for_every_prefix(size, prefix, tilewright):
    m, n, k = size
    ran = tilewright("run", "--m", m, "--n", n, "--k", k, "--stop-after", prefix)
    assert ran.status == 0, ran.out + ran.err
    assert f"PASS  all {m * n} elements" in ran.out


def test_a_trace_names_roles_and_pipes(tilewright, tmp_path):
    path = tmp_path / "trace.json"
    sizes = ("--m", "256", "--n", "136", "--k", "72")
    ran = tilewright("run", *sizes, "--preset", "v5", "--trace", path)
    assert ran.status == 0, ran.err
    events = json.loads(path.read_text())["traceEvents"]
    titles = {event["args"].get("name") for event in events if event["ph"] == "M"}
    assert {"warp 0 epilogue", "warp 4 load", "warp 5 mma", "tma", "tensor core"} <= titles
    assert any(event["name"] == "wait: accumulator.full" for event in events)
    assert any(event["ph"] == "s" for event in events)


def test_a_report_counts_by_role(tilewright, tmp_path):
    path = tmp_path / "report.json"
    sizes = ("--m", "256", "--n", "136", "--k", "72")
    ran = tilewright("run", *sizes, "--preset", "v5", "--report", "--report-json", path)
    assert ran.status == 0, ran.err
    assert "instructions by role" in ran.out and "tensor core" in ran.out
    roles = json.loads(path.read_text())["profile"]["roles"]
    assert [role["name"] for role in roles] == ["epilogue", "load", "mma"]


def test_a_deadlock_says_who_waits_for_whom(tilewright, tmp_path):
    place = tmp_path / "kernel.zip"
    sizes = ("--m", "256", "--n", "256", "--k", "128")
    tilewright("compile", *sizes, "--preset", "v5", "--emit", "bundle", "-o", place)
    bundle = read_bundle(place)
    kept = [line for line in bundle.ptx.splitlines() if "tcgen05.commit" not in line]
    write_bundle(place, bundle.manifest, "\n".join(kept), bundle.cubin)
    ran = tilewright("run", place, "--json")
    assert (ran.status, ran.json["ok"]) == (1, False)
    waits = {
        agent["role"]: agent["waits_for"]["name"]
        for agent in ran.json["deadlock"]["agents"]
        if agent["waits_for"]["kind"] == "mbarrier"
    }
    assert waits["epilogue"] == "accumulator.full"


SOURCE = """func.func @f(%x: tensor<48x40xf16>, %y: tensor<40x48xf16>) -> tensor<48x48xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<48x48xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<48x48xf32>) -> tensor<48x48xf32>
  %s = linalg.matmul ins(%x, %y : tensor<48x40xf16>, tensor<40x48xf16>)
    outs(%i : tensor<48x48xf32>) -> tensor<48x48xf32>
  %r = arith.CHANGE %s : tensor<48x48xf32>
  return %r : tensor<48x48xf32>
}"""


def test_a_file_is_held_to_its_own_text_and_a_bundle_to_the_text_that_is_named(
    tilewright, tmp_path
):
    place, right, wrong = (tmp_path / name for name in ("k.zip", "right.mlir", "wrong.mlir"))
    right.write_text(SOURCE.replace("arith.CHANGE", "math.absf"))
    wrong.write_text(SOURCE.replace("arith.CHANGE", "arith.negf"))
    ran = tilewright("run", right, "-o", place)
    assert ran.status == 0, ran.err
    assert f"reference  {right} evaluated op by op in float64" in ran.out
    assert "reference  the kernel's own product" in tilewright("run", place).out
    assert tilewright("run", place, "--reference", right).status == 0
    other = tilewright("run", place, "--reference", wrong)
    assert other.status == 1
    assert "FAIL  " in other.out


def test_a_reference_comes_with_a_kernel_only(tilewright, tmp_path):
    source = tmp_path / "f.mlir"
    source.write_text(SOURCE.replace("arith.CHANGE", "math.absf"))
    ran = tilewright("run", source, "--reference", source)
    assert ran.status == 2
    assert "a reference must come with a kernel; the source is its own" in ran.err
