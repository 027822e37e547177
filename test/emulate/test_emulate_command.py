"""`tilewright emulate` and its limits, on kernels that run, trap, wait for ever and never end."""

import json
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime import run_launch_file
from tilewright.runtime.emulator import Deadlock, Trap
from tilewright.runtime.emulator.host.launch import CHECKS as EMULATOR_CHECKS
from tilewright.runtime.launch_files import isolation
from tilewright.runtime.launch_files.options import RunOptions
from tilewright.runtime.launch_files.running import run_once
from tilewright.tools.command_line.emulator_flags import CHECKS
from tilewright.tools.main import main

EXAMPLES = Path(__file__).parent / "examples"
EXAMPLE = (EXAMPLES / "scaled_rows.ptx", EXAMPLES / "scaled_rows.json")
LAUNCH = {
    "entry": "k",
    "grid": [1],
    "block": [64],
    "tensors": [{"name": "out", "role": "output", "dtype": "u32", "shape": [64]}],
    "parameters": [{"pointer": "out"}],
}
BODY = """.shared .align 8 .b64 cell;
.visible .entry k(.param .u64 out) {{
  .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd0; ld.param.u64 %rd0, [out];
  mov.b32 %r0, cell; mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 0;
  {body}
  ret; }}"""
PAST_THE_END = "st.global.u32 [%rd0+256], %r1;"
TOO_EARLY = """@%p st.volatile.shared.u32 [%r0], 5;
  ld.volatile.shared.u32 %r2, [%r0]; st.global.u32 [%rd0], %r2;"""
NOBODY_ARRIVES = """@%p mbarrier.init.shared::cta.b64 [%r0], 1;
  bar.sync 0;
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%r0], 0;
  @!%p bra wait;"""
ENDLESS = "again: add.u32 %r1, %r1, 1; bra again;"


@pytest.fixture(autouse=True)
def in_this_process(request, monkeypatch):
    """Runs seeds here: only those with `child` in their parameters need a process, of 0.4 s."""
    if "child" not in request.fixturenames:
        monkeypatch.setattr(isolation, "run_seeds", _run_seeds)


def _run_seeds(ptx_path, launch_path, seeds, options, on_seed):
    for seed in seeds:
        on_seed(seed)
        result = run_once(ptx_path, launch_path, seed, options)
    return result


@pytest.fixture
def child():
    """Asks for the process in which `tilewright emulate` runs a kernel."""


@pytest.fixture
def command(files, header, capsys):
    """command(body, *words) runs a kernel with that body: status, stdout, stderr, the files."""

    def call(body: str, *words):
        paths = files(header + BODY.format(body=body), LAUNCH)
        return (*emulate(capsys, paths, *words), *paths)

    return call


def emulate(capsys, paths, *words):
    """Status, stdout, and stderr without the lines that say what takes long."""
    status = main(["emulate", str(paths[0]), "--launch", str(paths[1]), *map(str, words)])
    captured = capsys.readouterr()
    lines = captured.err.splitlines(keepends=True)
    return status, captured.out, "".join(line for line in lines if not line.endswith(" …\n"))


def expected_rows():
    x = np.arange(-60, 60, dtype=np.float32).reshape(5, 24)
    return x * 0.5


def test_the_example_prints_what_the_manual_shows(child, capsys):
    status, out, err = emulate(capsys, EXAMPLE, "--seeds", 4)
    assert (status, err) == (0, "")
    assert out == (EXAMPLES / "scaled_rows.txt").read_text()


def test_the_example_writes_its_output(capsys, tmp_path):
    folder = tmp_path / "new" / "results"
    status, out, _ = emulate(capsys, EXAMPLE, "--out", folder)
    assert status == 0 and out.endswith(f", 0 NaN, written to {folder}/out.npy\n")
    assert [path.name for path in folder.iterdir()] == ["out.npy"]
    written = np.load(folder / "out.npy")
    assert written.dtype == np.float32 and (written == expected_rows()).all()


def test_the_example_as_json_is_one_object(capsys):
    status, out, err = emulate(capsys, EXAMPLE, "--json", "--seed", 9)
    found = json.loads(out)
    assert (status, err, found["ok"], found["seed"], found["seeds_run"]) == (0, "", True, 9, 1)
    assert found["report"]["instructions"]["st.global.f32"] == 5
    assert found["outputs"] == [
        {
            "name": "out",
            "dtype": "f32",
            "shape": [5, 24],
            "min": -30.0,
            "max": 29.5,
            "mean": -0.25,
            "nan_count": 0,
            "path": None,
        }
    ]


def test_the_example_runs_from_python():
    result = run_launch_file(*EXAMPLE, seed=5)
    assert result.seed == 5 and result.report.kernel == "scaled_rows"
    assert (result.outputs["out"] == expected_rows()).all()


def test_what_is_not_written_is_counted_as_nan(files, header, capsys):
    launch = {**LAUNCH, "tensors": [{**LAUNCH["tensors"][0], "dtype": "f16"}]}
    paths = files(header + BODY.format(body=""), launch)
    _, out, _ = emulate(capsys, paths)
    assert out.splitlines()[-1] == "output out (f16 64): no number, 64 NaN"


def test_types_that_numpy_lacks_are_written_as_their_bits(files, header, capsys, tmp_path):
    launch = {**LAUNCH, "tensors": [{**LAUNCH["tensors"][0], "dtype": "bf16"}]}
    body = "mov.b32 %r2, 0x40003f80; @%p st.global.b32 [%rd0], %r2;"
    paths = files(header + BODY.format(body=body), launch)
    _, out, _ = emulate(capsys, paths, "--out", tmp_path)
    assert "output out (bf16 64): min 1, max 2, mean 1.5, 62 NaN, written to " in out
    assert np.load(tmp_path / "out.npy").tolist() == [0x3F80, 0x4000] + [0xFFFF] * 62


def test_a_trap_is_one_line_that_names_the_file(child, command):
    status, out, err, kernel, launch = command(PAST_THE_END)
    assert (status, out) == (1, "")
    verdict, replay = err.splitlines()
    assert verdict.startswith(f"{kernel}:8: error: kernel k, cta (0,0,0), warp ")
    assert ": `st.global.u32 [%rd0+256], %r1`: out-of-bounds: global " in verdict
    assert verdict.endswith(" past the end of tensor 'out' (256 bytes)")
    assert replay == f"replay: tilewright emulate {kernel} --launch {launch} --seed 0"


def test_a_failed_run_writes_no_output(command, tmp_path):
    folder = tmp_path / "new" / "results"
    assert command(PAST_THE_END, "--out", folder)[0] == 1
    assert not folder.parent.exists()


def test_a_folder_that_can_not_be_made_is_refused_before_the_run(command, tmp_path):
    (tmp_path / "file").write_text("in the way")
    status, _, err, *_ = command("", "--out", tmp_path / "file" / "results")
    rule = f"--out must be a folder that can be made, got {tmp_path}/file/results: File exists"
    assert (status, rule in err) == (2, True)


@pytest.mark.parametrize("flag", ["--trace", "--report-json"])
@pytest.mark.parametrize(("number", "own"), [(0, "FILE"), (1, "--launch")])
def test_what_is_read_is_not_written(flag, number, own, files, header, capsys):
    paths = files(header + BODY.format(body=""), LAUNCH)
    before = paths[number].read_bytes()
    status, _, err = emulate(capsys, paths, flag, paths[number])
    rule = f"{own} and {flag} must name two files, got {paths[number]} for both"
    assert (status, rule in err, paths[number].read_bytes()) == (2, True, before)


def test_a_trace_that_can_not_be_written_is_one_line(child, command):
    status, _, err, *_ = command("", "--trace", "/dev/full")
    rule = "must be usable, got No space left on device; use another path"
    assert (status, err) == (1, f"error: /dev/full: {rule}\n")


def test_a_process_that_ended_before_it_was_asked_is_no_broken_pipe():
    ended = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    ended.wait()
    with ended.stdin as stream:
        isolation._ask(stream, isolation.Request("k.ptx", "l.json", [0], RunOptions()))


def test_a_replay_has_the_limit_that_was_reached(command):
    _, _, err, *_ = command(ENDLESS, "--max-steps", 50)
    assert err.splitlines()[-1].endswith(" --max-steps 50 --seed 0")


def test_the_first_seed_that_fails_replays(child, command):
    status, out, err, *_ = command(TOO_EARLY, "--seeds", 40, "--json")
    found = json.loads(out)
    assert (status, found["ok"], found["category"]) == (1, False, "uninitialised-read")
    assert found["seed"] > 0 and found["replay"].endswith(f" --seed {found['seed']}")
    assert err.splitlines()[0] == found["error"]
    again = command(TOO_EARLY, "--seed", found["seed"])
    assert (again[0], again[2]) == (1, err)
    assert command(TOO_EARLY, "--seed", found["seed"] - 1)[0] == 0


def test_a_deadlock_lists_who_waits(child, command):
    status, out, err, *_ = command(NOBODY_ARRIVES, "--json")
    found = json.loads(out)
    assert (status, found["category"], found["kernel"]) == (1, "deadlock", "k")
    assert err.splitlines()[1:-1] == found["evidence"]
    assert sum("warp" in line for line in found["evidence"]) == 2
    assert any("mbarrier" in line for line in found["evidence"])


def test_a_kernel_that_never_ends_stops_at_its_steps(command):
    status, _, err, *_ = command(ENDLESS, "--max-steps", 5000)
    assert status == 1
    assert ": step-limit: the launch ran more than max_steps=5000 instructions\n" in err


def test_a_kernel_that_never_ends_stops_at_its_seconds(child, command):
    started = time.monotonic()
    status, _, err, *_ = command(ENDLESS, "--seed", 3, "--max-seconds", 1.5)
    assert status == 1 and 1.5 < time.monotonic() - started < 60
    verdict, replay = err.splitlines()[-2:]
    assert verdict == "error: time-limit: the launch ran longer than max_seconds=1.5"
    assert replay.endswith(" --seed 3")


def test_the_limits_hold_in_python_too(child, files, header):
    paths = files(header + BODY.format(body=ENDLESS), LAUNCH)
    with pytest.raises(Trap, match="step-limit"):
        run_launch_file(*paths, max_steps=2000)
    with pytest.raises(Trap) as caught:
        run_launch_file(*paths, max_seconds=1)
    assert caught.value.category == "time-limit"


def test_errors_cross_the_process_whole(child, files, header):
    paths = files(header + BODY.format(body=NOBODY_ARRIVES), LAUNCH)
    with pytest.raises(Deadlock) as here:
        run_launch_file(*paths, seed=2)
    with pytest.raises(Deadlock) as there:
        run_launch_file(*paths, seed=2, max_seconds=60)
    assert str(here.value) == str(there.value)
    assert (there.value.warp, there.value.kernel) == (here.value.warp, "k")


def test_variables_are_bounded(command):
    status, _, err, kernel, _ = command("}\n.global .b8 huge[1099511627776];\n.func f() {")
    assert status == 1
    wanted = "out-of-bounds: the variables of a module must have at most 4294967296 bytes"
    assert err.startswith(f"{kernel}:9: error: {wanted}, got 1099511627776")


def test_nesting_beyond_reason_is_refused(child, command):
    status, _, err, kernel, _ = command("{" * 20_000 + "}" * 20_000)
    assert status == 1
    assert re.match(rf"{kernel}:8:\d+: error: expected blocks and lists that nest less deeply", err)


def test_a_wrong_launch_file_is_one_line_and_status_1(files, header, capsys):
    paths = files(header + BODY.format(body=""), {**LAUNCH, "grid": []})
    status, out, err = emulate(capsys, paths, "--json")
    rule = "grid: must have 1 to 3 items, got 0; docs/emulate.md has the schema"
    wanted = f"error: {paths[1]}: {rule}"
    assert (status, err) == (1, wanted + "\n")
    assert json.loads(out) == {"ok": False, "error": wanted}


def test_a_kernel_that_is_no_ptx_is_one_line_and_status_1(files, capsys):
    paths = files("hello", LAUNCH)
    status, _, err = emulate(capsys, paths)
    assert status == 1 and err.startswith(f"{paths[0]}:1:1: error: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "the following arguments are required: --launch"),
        (
            ("--launch", "l", "--seed", "-1"),
            "argument --seed: must be an integer from 0 below 2^63, got '-1'",
        ),
        (("--launch", "l", "--seeds", "0"), "argument --seeds: must be an integer from 1, got '0'"),
        (
            ("--launch", "l", "--seed", "1", "--seeds", "2"),
            "argument --seeds: not allowed with argument --seed",
        ),
        (
            ("--launch", "l", "--max-steps", "0"),
            "argument --max-steps: must be an integer from 1, got '0'",
        ),
        (
            ("--launch", "l", "--max-seconds", "nan"),
            "argument --max-seconds: must be seconds above 0 and up to 1e6, got 'nan'",
        ),
    ],
)
def test_a_wrong_command_line_is_status_2(words, message, capsys):
    status = main(["emulate", "kernel.ptx", *words])
    captured = capsys.readouterr()
    assert (status, captured.out) == (2, "")
    assert captured.err == f"error: tilewright emulate: {message}; see tilewright emulate --help\n"


def test_an_output_folder_that_cannot_be_made_is_status_2(capsys, tmp_path):
    (tmp_path / "taken").write_text("")
    status, _, err = emulate(capsys, EXAMPLE, "--out", tmp_path / "taken")
    wanted = f"--out must be a folder that can be made, got {tmp_path}/taken: File exists"
    assert status == 2
    assert err == f"error: tilewright emulate: {wanted}; see tilewright emulate --help\n"


def test_a_trace_is_written_of_the_seed_that_fails(command, tmp_path):
    path = tmp_path / "trace.json"
    assert command(TOO_EARLY, "--seeds", 40, "--trace", path)[0] == 1
    trace = json.loads(path.read_text())
    assert "uninitialised-read" in trace["otherData"]["error"]


def test_a_trace_goes_where_one_can_be_written(command, tmp_path):
    status, out, err, *_ = command("", "--trace", tmp_path)
    assert (status, out) == (1, "")
    assert err == f"error: {tmp_path}: must be a file, got a folder; choose another path\n"


def test_a_report_is_printed_and_written(command, tmp_path):
    path = tmp_path / "report.json"
    body = "st.shared.u32 [%r0], 5; st.global.u32 [%rd0], 5;"
    status, out, *_ = command(body, "--report", "--report-json", path)
    assert status == 0
    assert out.splitlines()[-2].split()[:3] == ["warps", "0-1", "0-1"]
    profile = json.loads(path.read_text())["profile"]
    written = {"memory": "shared", "direction": "write", "by": "threads", "bytes": 256}
    assert written in profile["bytes"]
    assert json.loads(command(body, "--report", "--json")[1])["report"]["profile"] == profile


def test_a_report_without_the_flag_has_no_profile(command):
    assert "profile" not in json.loads(command("", "--json")[1])["report"]


# Thread 0 writes what thread 32 reads; only the order of this seed keeps them apart.
RACE = """@%p st.shared.u32 [%r0], 5;
  @%p st.shared.u32 [%r0+4], 6;
  setp.eq.u32 %p, %r1, 32;
  @%p st.shared.u32 [%r0+4], 7;"""


def test_races_are_looked_for_unless_told_otherwise(command):
    found = json.loads(command(RACE, "--json")[1])
    assert (found["ok"], found["category"]) == (False, "race")
    assert command(RACE, "--check", "full")[0] == 1
    for level in ("fast", "off"):
        assert command(RACE, "--check", level)[0] == 0


def test_a_replay_has_the_check_that_failed(command):
    err = command(PAST_THE_END, "--check", "fast")[2]
    assert err.splitlines()[-1].endswith(" --check fast --seed 0")


def test_workers_share_the_clusters_out_and_give_the_same_results(capsys, tmp_path):
    words = (["--json"], ["--json", "--workers", "2"])
    alone, shared = (json.loads(emulate(capsys, EXAMPLE, *each)[1]) for each in words)
    assert (alone["report"].pop("workers"), shared["report"].pop("workers")) == (1, 2)
    assert shared == alone


def test_workers_must_be_positive(command):
    status, _, err, *_ = command("", "--workers", "0")
    assert status == 2
    assert "argument --workers: must be" in err


def test_an_unknown_check_is_a_wrong_command_line(command):
    status, _, err, *_ = command("", "--check", "some")
    assert status == 2
    assert "argument --check: must be one of off, fast, shipped, full, got 'some'; see " in err


def test_the_levels_are_those_of_the_emulator():
    assert tuple(CHECKS) == EMULATOR_CHECKS


def test_a_launch_file_names_barriers_and_roles(files, header, capsys):
    barriers = [{"name": "ready", "offset_bytes": 0, "count": 1}]
    roles = [{"name": "everybody", "first_warp": 0, "warps": 2}]
    body = BODY.replace(".shared .align 8 .b64 cell;", ".extern .shared .align 8 .b8 cell[];")
    named = {**LAUNCH, "shared_bytes": 64, "names": {"barriers": barriers, "roles": roles}}
    paths = files(header + body.format(body=NOBODY_ARRIVES), named)
    found = json.loads(emulate(capsys, paths, "--json")[1])["deadlock"]["agents"]
    assert {(agent["role"], agent["waits_for"]["name"]) for agent in found} == {
        ("everybody", "ready")
    }
