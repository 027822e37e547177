"""compile and run with a stand-in compiler and device: what is written, printed and judged."""

import importlib
import json
import sys
import types

import pytest

from tilewright.compiler.backend import Assembled
from tilewright.dialects.errors import CompileError
from tilewright.runtime import DeviceError, read_bundle
from tilewright.tools.command_line import progress

PTX = (
    ".version 8.8\n.target sm_100a\n.address_size 64\n"
    ".visible .entry matmul(.param .u64 a, .param .u64 b, .param .u64 c)\n{\nret;\n}\n"
)
SPEC = ("--m", "20", "--n", "12", "--k", "33")


def manifest_of(spec):
    a_strides = [spec.k, 1] if spec.a_major == "k" else [1, spec.m]
    b_strides = [spec.k, 1] if spec.b_major == "k" else [1, spec.n]
    tensors = [
        ("a", "input", spec.a_dtype, [spec.m, spec.k], a_strides),
        ("b", "input", spec.b_dtype, [spec.n, spec.k], b_strides),
        ("c", "output", spec.c_dtype, [spec.m, spec.n], [spec.n, 1]),
    ]
    names = ("name", "role", "dtype", "shape", "strides")
    return {
        "spec": spec.as_dict(),
        "target": "sm_100a",
        "pipeline": "tiling",
        "schedule": {"tile": [128, 128, 64]},
        "entry": "matmul",
        "grid": [1, 1, 1],
        "cluster": [1, 1, 1],
        "block": [128, 1, 1],
        "dynamic_shared_bytes": 0,
        "workspace_bytes": 0,
        "tensors": [dict(zip(names, row, strict=True)) for row in tensors],
        "parameters": [
            {"kind": "pointer", "tensor": name, "alignment_bytes": 2} for name in ("a", "b", "c")
        ],
        "epilogue": {
            "arguments": [{"tensor": None, "axes": ["m", "n"]}],
            "operations": [],
            "result": 0,
        },
        "resources": {
            "registers": 33,
            "spill_store_bytes": 0,
            "spill_load_bytes": 0,
            "static_shared_bytes": 8,
        },
        "tools": {},
    }


WARNING = {"category": "empty-commit", "message": "a commit of nothing"}


class FakeReport:
    def as_dict(self):
        return {"instructions": {"ret": 7}, "warnings": [WARNING]}


class FakeDevice:
    """Computes with torch; `damage` may then change the output."""

    name = "emulator"
    place = "cpu"
    target = None

    def __init__(self):
        self.damage = lambda c: None
        self.seen = {}

    def launch(self, bundle, tensors, seed=0):
        self.seen = {name: tensor.clone() for name, tensor in tensors.items()}
        c = tensors["c"]
        c.copy_(tensors["a"].double() @ tensors["b"].double().T)
        self.damage(c)
        return FakeReport()


@pytest.fixture
def device(monkeypatch):
    fake = FakeDevice()
    monkeypatch.setattr("tilewright.runtime.launch.devices.open_device", lambda name: fake)
    return fake


@pytest.fixture
def driver(monkeypatch):
    """Stands in for the compiler; its `calls` keep the keywords, `error` is raised if set."""
    for name in ("bundle_writer", "buckets"):  # which import the real one
        importlib.import_module(f"tilewright.compiler.{name}")
    module = types.ModuleType("driver")
    module.calls, module.error = [], None

    def compile_matmul(source, *, observer=None, **keywords):
        module.calls.append({"source": source, **keywords})
        if module.error:
            raise module.error
        event = types.SimpleNamespace(
            name="tiling", seconds=0.002, summary="tiled 128x128x64", ir=lambda: "module {}"
        )
        if observer:
            observer(event)
        return types.SimpleNamespace(
            entry="matmul",
            mlir="module { llvm.func @matmul() }",
            llvm_ir="define void @matmul()",
            ptx=PTX,
            assembled=Assembled(b"\x7fELFcubin", 33, 0, 0, 0, 8, ""),
            manifest=manifest_of(source),
            remarks=["remark: operand a is copied without TMA"],
            stages=[("tiling", 0.002), ("ptx", 0.003)],
            target="sm_100a",
            level=None,
            chosen=keywords["pipeline"] is None and keywords["preset"] is None,
            given_up=(),
        )

    module.compile_matmul = compile_matmul
    monkeypatch.setitem(sys.modules, "tilewright.compiler.driver", module)
    return module


@pytest.mark.parametrize(
    ("emit", "until", "text"),
    [
        ("mlir", "mlir", "module { llvm.func @matmul() }\n"),
        ("llvm", "cubin", "define void @matmul()\n"),  # by which ptxas says whether there is room
        ("ptx", "cubin", PTX),
    ],
)
def test_compile_prints_text_and_remarks_go_to_stderr(emit, until, text, driver, tilewright):
    ran = tilewright("compile", *SPEC, "--emit", emit)
    assert (ran.status, ran.out) == (0, text)
    assert ran.err == "remark: operand a is copied without TMA\n"
    assert driver.calls[-1]["until"] == until


def test_compile_hands_every_flag_on(driver, tilewright, tmp_path):
    words = ["--a-dtype=f16", "--b-dtype=f16", "--c-dtype=f32", "--a-major=m", "--b-major=n"]
    options = ["--pipeline", "tiling{tile=128x64x64}", "--stop-after", "tiling", "--allow-spills"]
    options += ["--emit", "cubin", "-o", tmp_path / "k.cubin"]
    assert tilewright("compile", *SPEC, *words, *options).status == 0
    call = driver.calls[0]
    spec = call["source"]
    assert (spec.m, spec.n, spec.k) == (20, 12, 33)
    assert (spec.a_dtype, spec.c_dtype, spec.a_major, spec.b_major) == ("f16", "f32", "m", "n")
    assert call["pipeline"] == "tiling{tile=128x64x64}"
    assert (call["stop_after"], call["preset"], call["allow_spills"]) == ("tiling", None, True)


def test_compile_writes_a_cubin_and_a_bundle(driver, tilewright, tmp_path):
    cubin, bundle = tmp_path / "k.cubin", tmp_path / "k.zip"
    assert tilewright("compile", *SPEC, "--emit", "cubin", "-o", cubin).status == 0
    assert tilewright("compile", *SPEC, "--emit", "bundle", "-o", bundle).status == 0
    assert cubin.read_bytes() == b"\x7fELFcubin"
    assert read_bundle(bundle).manifest["spec"]["k"] == 33
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.cubin", "k.zip"]


@pytest.mark.parametrize(
    ("name", "head"),
    [("k.zip", b"PK"), ("k.cubin", b"\x7fELF"), ("k.ptx", PTX.encode()), ("k.text", PTX.encode())],
)
def test_the_suffix_says_what_compile_writes(name, head, driver, tilewright, tmp_path):
    assert tilewright("compile", *SPEC, "-o", tmp_path / name).status == 0
    assert (tmp_path / name).read_bytes().startswith(head)


def test_compile_as_json_is_one_object_on_stdout(driver, tilewright):
    ran = tilewright("compile", *SPEC, "--json")
    assert ran.json["ok"] is True
    assert ran.json["text"] == PTX
    assert ran.json["stages_seconds"] == {"tiling": 0.002, "ptx": 0.003}
    assert ran.json["remarks"] == ["remark: operand a is copied without TMA"]


def test_print_after_all_goes_to_stderr(driver, tilewright):
    ran = tilewright("compile", *SPEC, "--print-after-all")
    assert "// ---- after tiling ----\nmodule {}\n" in ran.err
    assert ran.out == PTX


def test_no_progress_stands_between_printed_ir(driver, tilewright, monkeypatch):
    steps = []
    monkeypatch.setattr(progress.Progress, "update", lambda _, step: steps.append(step))
    tilewright("compile", *SPEC, "--print-after-all")
    assert steps == ["compiling"]
    tilewright("compile", *SPEC)
    assert "compiling, after tiling" in steps


def test_a_compile_error_is_one_line_and_status_1(driver, tilewright, tmp_path):
    driver.error = CompileError("tile.mma: K must be a multiple of 16, got 100", "m.mlir:7:3")
    out = tmp_path / "k.ptx"
    ran = tilewright("compile", *SPEC, "-o", out)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "m.mlir:7:3: error: tile.mma: K must be a multiple of 16, got 100\n"
    assert list(tmp_path.iterdir()) == []


def test_an_unforeseen_error_shows_no_traceback_unless_asked(driver, tilewright, monkeypatch):
    driver.error = ZeroDivisionError("division by zero")
    ran = tilewright("compile", *SPEC, "--json")
    assert ran.status == 1
    assert ran.err.startswith("internal error: ZeroDivisionError: division by zero; please report")
    assert ran.json == {"ok": False, "error": ran.err.strip()}
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        tilewright("compile", *SPEC)


@pytest.mark.parametrize("emit", ["ptx", "cubin"])
def test_an_output_that_cannot_be_written_is_refused_before_compiling(
    emit, driver, tilewright, tmp_path
):
    missing = tmp_path / "no" / "k"
    ran = tilewright("compile", *SPEC, "--emit", emit, "-o", missing)
    assert ran.status == 1
    assert ran.err == (
        f"error: {missing}: the folder '{missing.parent}' must exist, got none;"
        " choose another path\n"
    )
    ran = tilewright("compile", *SPEC, "--emit", emit, "-o", tmp_path)
    assert ran.err == f"error: {tmp_path}: must be a file, got a folder; choose another path\n"
    assert driver.calls == []


def test_a_file_in_the_place_of_a_folder_is_refused(driver, tilewright, tmp_path):
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "k.zip"
    ran = tilewright("compile", *SPEC, "--emit", "bundle", "-o", place)
    assert ran.status == 1
    assert f"the folder '{place.parent}' must exist" in ran.err


def test_run_passes_when_the_device_computes_right(driver, device, tilewright):
    ran = tilewright("run", *SPEC)
    assert ran.status == 0
    last = ran.out.strip().splitlines()[-1]
    assert last.startswith("PASS  all 240 elements, largest error 0.")
    assert "warning: empty-commit: a commit of nothing" in ran.out
    assert "matmul     20×12×33, bf16 · bf16 → bf16, A K-major, B K-major, sm_100a" in ran.out


def test_run_fails_on_one_wrong_element_and_names_it(driver, device, tilewright):
    def damage(c):
        c[17, 5] += 0.5

    device.damage = damage
    ran = tilewright("run", *SPEC)
    assert ran.status == 1
    last = ran.out.strip().splitlines()[-1]
    assert last.startswith("FAIL  1 of 240 elements")
    assert "is allowed: [17, 5] is" in last


def test_run_fails_on_an_output_that_was_left_alone(driver, device, tilewright):
    device.damage = lambda c: c.copy_(device.seen["c"])
    ran = tilewright("run", *SPEC, "--json")
    assert ran.status == 1
    assert ran.json["ok"] is False
    assert ran.json["comparison"]["mismatches"] == 240
    assert ran.json["comparison"]["actual"] == "nan"
    assert "NaN" not in ran.out


def test_run_fails_when_operands_are_exchanged(driver, device, tilewright):
    def damage(c):
        a, b = device.seen["a"].double(), device.seen["b"].double()
        c.copy_(b @ a.T)

    device.damage = damage
    assert tilewright("run", "--m", "16", "--n", "16", "--k", "16").status == 1


def test_inputs_are_fixed_by_the_seed_and_outputs_are_poisoned(driver, device, tilewright):
    seen = []
    for seed in (5, 5, 6):
        tilewright("run", *SPEC, "--seed", seed)
        seen.append(device.seen)
    assert seen[0]["c"].isnan().all()
    assert seen[0]["a"].equal(seen[1]["a"])
    assert not seen[0]["a"].equal(seen[2]["a"])
    assert not seen[0]["a"][:12].equal(seen[0]["b"])


def test_majors_reach_the_strides_of_the_inputs(driver, device, tilewright):
    tilewright("run", *SPEC, "--a-major", "m", "--b-major", "n")
    assert device.seen["a"].stride() == (1, 20)
    assert device.seen["b"].stride() == (1, 12)


@pytest.mark.parametrize("operand", ["a", "b"])
def test_an_identity_operand_leaves_the_other_alone(operand, driver, device, tilewright):
    assert tilewright("run", *SPEC, "--identity", operand).status == 0
    identity = device.seen[operand].float()
    assert identity.sum() == min(identity.shape)
    assert identity.diagonal().eq(1).all()


def test_run_as_json_holds_the_comparison_and_the_report(driver, device, tilewright):
    ran = tilewright("run", *SPEC, "--seed", "4", "--json")
    assert ran.json["ok"] is True
    assert ran.json["seed"] == 4
    assert ran.json["report"]["instructions"] == {"ret": 7}
    assert ran.json["comparison"]["elements"] == 240
    assert ran.json["passes"] == [
        {"name": "tiling", "seconds": 0.002, "summary": "tiled 128x128x64"}
    ]


def test_run_verbose_tells_passes_registers_spills_and_the_ptx(
    driver, device, tilewright, tmp_path
):
    place = tmp_path / "made" / "bundle"
    ran = tilewright("run", *SPEC, "-v", "-o", place)
    assert "tiled 128x128x64" in ran.out
    assert "executed   7 warp instructions" in ran.out
    assert "remark: operand a is copied without TMA" in ran.out
    assert "33 registers, 0 bytes spilled, 8 bytes of shared memory" in ran.out
    assert f"ptx        {place}/kernel.ptx" in ran.out
    assert (place / "kernel.ptx").read_text().startswith(f"{PTX.rstrip()}\n// launch ")


def test_a_bundle_runs_without_compiling(driver, device, tilewright, tmp_path):
    place = tmp_path / "k.zip"
    tilewright("compile", *SPEC, "--emit", "bundle", "-o", place)
    driver.calls.clear()
    assert tilewright("run", place).status == 0
    assert driver.calls == []


def test_a_bundle_with_compilation_flags_is_wrong_usage(driver, device, tilewright, tmp_path):
    place = tmp_path / "k.zip"
    tilewright("compile", *SPEC, "--emit", "bundle", "-o", place)
    ran = tilewright("run", place, "--preset", "default")
    assert ran.status == 2
    assert "a bundle is compiled already and must come without --preset" in ran.err
    for words, message in {
        ("--math", "fast"): "a bundle is compiled already and must come without --math",
        ("--allow-spills",): "a bundle is compiled already and must come without --allow-spills",
        ("--origins",): "a bundle is compiled already and must come without --origins",
        ("--trust",): "--trust must come with a .pt2 FILE, got ",
        ("--target", "h200"): "a bundle of sm_100a must come without another --target, got h200",
    }.items():
        ran = tilewright("run", place, *words)
        assert ran.status == 2 and message in ran.err


def test_a_truncated_bundle_is_refused(device, tilewright, tmp_path):
    place = tmp_path / "k.zip"
    place.write_bytes(b"PK\x03\x04 and then nothing")
    ran = tilewright("run", place)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"error: {place}: must be a whole zip file, got ")


def test_the_target_is_the_devices_unless_named(driver, device, tilewright):
    device.target = "sm_90a"
    tilewright("run", *SPEC, "--device", "cuda")
    tilewright("run", *SPEC, "--device", "cuda", "--target", "sm_100a")
    device.target = None
    tilewright("run", *SPEC)
    assert [call["target"] for call in driver.calls] == ["sm_90a", "sm_100a", None]


def test_verbose_names_the_gpu_that_ran_the_kernel(driver, device, tilewright, monkeypatch):
    said = {"gpu": "cuda:1 (NVIDIA H200)", "capability": "9.0", "driver_version": "13.0"}
    monkeypatch.setattr(FakeReport, "as_dict", lambda self: said)
    ran = tilewright("run", *SPEC, "--device", "cuda:1", "-v")
    assert "\ngpu        cuda:1 (NVIDIA H200), sm 9.0, driver for CUDA 13.0\n" in ran.out
    assert "executed" not in ran.out


def test_an_unknown_device_is_refused_before_compiling(driver, tilewright):
    ran = tilewright("run", *SPEC, "--device", "abacus")
    rule = "argument --device: must be emulator, cuda or cuda:N, got 'abacus'"
    told = f"error: tilewright run: {rule}; see tilewright run --help\n"
    assert (ran.status, ran.err) == (2, told)
    assert driver.calls == []


def test_a_device_error_is_one_line_and_status_1(driver, device, tilewright):
    def damage(c):
        raise DeviceError("matmul: cta (0, 0, 0) warp 1 line 40: out of bounds")

    device.damage = damage
    ran = tilewright("run", *SPEC)
    assert ran.status == 1
    assert ran.err == "error: matmul: cta (0, 0, 0) warp 1 line 40: out of bounds\n"


def test_version_names_every_tool(tilewright):
    ran = tilewright("--version")
    assert ran.status == 0
    names = [line.split()[0] for line in ran.out.splitlines()]
    assert names == ["tilewright", "mlir", "llvm", "ptxas"]
    assert json.loads(tilewright("--version", "--json").out)["llvm"].count(".") == 2
