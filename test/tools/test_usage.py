"""Wrong command lines: one line in the house form, exit status 2, nothing on stdout."""

import subprocess
import sys

import pytest

SPEC = ("--m", "8", "--n", "8", "--k", "16")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "error: tilewright: a command must be named, got none; see tilewright --help"),
        (
            ("compile",),
            "error: tilewright compile: a FILE or --m, --n and --k must be given,"
            " got no --m, --n, --k; see tilewright compile --help",
        ),
        (
            ("run", "--m", "4", "--k", "16"),
            "error: tilewright run: a FILE or --m, --n and --k must be given, got no --n;"
            " see tilewright run --help",
        ),
        (
            ("compile", *SPEC, "--fast"),
            "error: tilewright compile: unrecognized arguments: --fast;"
            " see tilewright compile --help",
        ),
        (
            ("explain", "schedule", *SPEC, "much", "more"),
            "error: tilewright explain schedule: unrecognized arguments: more;"
            " see tilewright explain schedule --help",
        ),
        (
            ("compile", "--m", "many"),
            "error: tilewright compile: argument --m: must be an integer, got 'many';"
            " see tilewright compile --help",
        ),
        *(
            (
                ("compile", "--m", number),
                f"error: tilewright compile: argument --m: must be an integer, got '{number}';"
                " see tilewright compile --help",
            )
            for number in ("1_0", " 64", "+8", "\u0663")
        ),
        (
            ("compile", "x.mlir", "--m", "4", "--a-dtype", "f16"),
            "error: tilewright compile: a FILE must come without spec flags, got --m, --a-dtype;"
            " see tilewright compile --help",
        ),
        (
            ("compile", *SPEC, "--m", "16"),
            "error: tilewright compile: argument --m: must be given once, got 16 as well;"
            " see tilewright compile --help",
        ),
        (
            ("run", *SPEC, "--trust"),
            "error: tilewright run: --trust must come with a .pt2 FILE, got none;"
            " see tilewright run --help",
        ),
        (
            ("compile", *SPEC, "--batch", "0"),
            "error: tilewright compile: --batch must be from 1 on, got 0; leave it out for one"
            " matrix; see tilewright compile --help",
        ),
        (
            ("opt", "x.mlir", "--list-passes", "-o", "y.mlir"),
            "error: tilewright opt: --list-passes must come alone, got file, output;"
            " see tilewright opt --help",
        ),
        (
            ("run", *SPEC, "--trace", "made.json", "--report-json", "./made.json"),
            "error: tilewright run: --trace and --report-json must name two files, got made.json"
            " for both; see tilewright run --help",
        ),
        (
            ("run", *SPEC, "-o", "made.zip", "--report-json", "made.zip"),
            "error: tilewright run: --report-json and -o must name two files, got made.zip for"
            " both; see tilewright run --help",
        ),
        (
            ("run", *SPEC, "--fp8-sums", "hopper"),
            "error: tilewright run: --fp8-sums must come with a kernel that multiplies 8-bit"
            " floats by wgmma, got another; see tilewright run --help",
        ),
        (
            ("bisect", *SPEC, "--pipeline", "normalize"),
            "error: tilewright bisect: a pipeline must have a pass that leaves a kernel, as"
            " tiling, got none; see tilewright bisect --help",
        ),
        (
            ("conform", "--list", "torch:matmul"),
            "error: tilewright conform: --list must come without a SUBJECT, got torch:matmul;"
            " see tilewright conform --help",
        ),
        (
            ("opt", "x.mlir", "--target", "sm_90a"),
            "error: tilewright opt: --target must come with --passes, which read it, got sm_90a"
            " alone; see tilewright opt --help",
        ),
        (
            ("compile", *SPEC, "--emit", "mlir", "--allow-spills", "--origins"),
            "error: tilewright compile: --emit mlir must come without --allow-spills, --origins,"
            " read later; see tilewright compile --help",
        ),
        (
            ("compile", *SPEC, "--allow-spills", "--origins"),
            "error: tilewright compile: --emit ptx must come without --allow-spills, read later;"
            " see tilewright compile --help",
        ),
        (
            ("compile", *SPEC, "--emit", "cubin"),
            "error: tilewright compile: --emit cubin must come with -o PATH, got none;"
            " see tilewright compile --help",
        ),
        (
            ("compile", *SPEC, "--emit", "bundle"),
            "error: tilewright compile: --emit bundle must come with -o PATH, got none;"
            " see tilewright compile --help",
        ),
        (
            ("run", *SPEC, "--device", "cuda", "--trace", "t.json", "--check", "fast"),
            "error: tilewright run: --check, --trace must come with --device emulator, got cuda;"
            " see tilewright run --help",
        ),
        (
            ("ladder", "--check", "most"),
            "error: tilewright ladder: argument --check: must be one of off, fast, shipped,"
            " full, got 'most'; see tilewright ladder --help",
        ),
        (
            ("run", *SPEC, "--seed", "-1"),
            "error: tilewright run: argument --seed: must be an integer from 0 below 2^63, "
            "got '-1'; see tilewright run --help",
        ),
        (
            ("explain", "schedule", "--m", "4"),
            "error: tilewright explain schedule: a FILE or --m, --n and --k must be given,"
            " got no --n, --k; see tilewright explain schedule --help",
        ),
        (
            ("explain",),
            "error: tilewright explain: a subject must be named, got none;"
            " see tilewright explain --help",
        ),
        (
            ("opt", "--passes", "normalize"),
            "error: tilewright opt: FILE must be given, got none; see tilewright opt --help",
        ),
    ],
)
def test_a_wrong_command_line_gets_one_line_and_status_2(words, message, tilewright):
    ran = tilewright(*words)
    assert (ran.status, ran.out, ran.err) == (2, "", message + "\n")


@pytest.mark.parametrize(
    "words",
    [
        ("compile", *SPEC, "--emit", "hex"),
        ("compile", *SPEC, "--colour"),
        ("compile", *SPEC, "--pipeline", "tiling", "--preset", "default"),
        ("run", *SPEC, "--identity", "c"),
        ("polish",),
    ],
)
def test_what_argparse_refuses_keeps_the_form(words, tilewright):
    ran = tilewright(*words)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error: tilewright")
    assert ran.err.count("\n") == 1


def test_usage_errors_are_json_where_json_is_asked(tilewright):
    ran = tilewright("compile", "--json")
    assert ran.status == 2
    assert ran.json == {"ok": False, "error": ran.err.strip()}


@pytest.mark.parametrize("words", [(), ("compile",), ("opt",), ("run",)])
def test_every_help_has_examples(words, capsys, tilewright):
    with pytest.raises(SystemExit) as left:
        tilewright(*words, "--help")
    assert left.value.code == 0
    assert "examples:\n  tilewright " in capsys.readouterr().out


WITHOUT_MLIR = """
import sys
for name in ("mlir", "torch_mlir", "llvmlite"):
    sys.modules[name] = None
from tilewright.tools.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["run", "nothing.zip", "--device", "abacus"], 2, "error: tilewright run: argument --dev"),
        (["run", "--m", "3", "--n", "4", "--k", "5"], 1, "error: torch_mlir: must be installed"),
    ],
)
def test_a_machine_without_mlir_gets_one_line_too(words, status, message):
    command = [sys.executable, "-c", WITHOUT_MLIR, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_help_loads_neither_mlir_nor_numpy_nor_torch():
    code = (
        "import sys, tilewright.tools.main as m\n"
        "try: m.main(['run', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'torch_mlir', 'mlir', 'llvmlite', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
