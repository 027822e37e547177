"""The package `tilewright`: its public names, what importing it costs, what it does without its
compiler, and what of the tree is installed."""

import inspect
import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import tilewright
from tilewright.compiler.bundle_writer import as_bundle

ROOT = Path(__file__).parent.parent.parent
COMPILER = ("llvmlite", "mlir", "nvidia", "torch", "torch_mlir")
CURE = "pip install '.[compiler]' in a checkout of tilewright"
BLOCKED = f"import sys; sys.modules.update(dict.fromkeys({COMPILER}))\n"
OF_TORCH = ("tilewright.runtime.launch.torch_op",)  # for the tensors of a torch that is there
DOUBLED = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry double(.param .u64 values)
{
  .reg .b32 %index;
  .reg .b64 %address, %offset;
  .reg .f32 %value;
  ld.param.u64 %address, [values];
  mov.u32 %index, %tid.x;
  mul.wide.u32 %offset, %index, 4;
  add.u64 %address, %address, %offset;
  ld.global.f32 %value, [%address];
  add.f32 %value, %value, %value;
  st.global.f32 [%address], %value;
  ret;
}
"""


def in_child(code: str, *words: str) -> str:
    """What the code prints in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_importing_the_package_takes_less_than_a_tenth_of_a_second_and_loads_nothing_large():
    large = ("ml_dtypes", "numpy", *COMPILER)
    code = "import sys, time; start = time.process_time(); import tilewright\n"
    code += "import json; print(json.dumps([time.process_time() - start, [*sys.modules]]))"
    seconds, modules = json.loads(in_child(code))
    assert seconds < 0.1
    assert not set(large) & set(modules)


def test_a_kernel_is_compiled_without_what_takes_long_to_import(tmp_path):
    """Neither numpy nor torch, nor the reader of e-mails by which `importlib.metadata` works."""
    code = "import sys\nfrom tilewright.tools.main import main\n"
    code += "assert main(sys.argv[1:]) == 0; print(*sys.modules)"
    words = ("compile", "--m=128", "--n=64", "--k=64", "--emit=cubin", "-o", str(tmp_path / "c"))
    assert not {"numpy", "torch", "email.parser"} & set(in_child(code, *words).split())


@pytest.mark.parametrize("name", tilewright.__all__)
def test_a_public_name_is_found_when_it_is_asked_for(name):
    module, attribute = tilewright._HOMES[name]
    assert getattr(tilewright, name) is getattr(import_module(f"tilewright.{module}"), attribute)
    assert name in dir(tilewright)


@pytest.mark.parametrize("name", tilewright._MODULES)
def test_a_public_module_is_there_without_an_import_of_its_own(name):
    """In a process that has imported nothing of it."""
    code = f"import tilewright; print(sorted(tilewright.{name}.__all__))"
    assert in_child(code).strip() == str(sorted(getattr(tilewright, name).__all__))
    assert name in dir(tilewright)


def test_a_name_that_is_not_public_is_refused_as_by_any_module():
    with pytest.raises(AttributeError, match="module 'tilewright' has no attribute 'matmull'"):
        tilewright.matmull  # noqa: B018


LIMITED = f"""{BLOCKED}
import contextlib, importlib, io, json
import numpy, tilewright
from tilewright.tools.main import main

modules, commands = json.loads(sys.argv[1])
for name in modules:
    importlib.import_module(name)
values = numpy.arange(4, dtype=numpy.float32)
tilewright.emulate({DOUBLED!r}, "double", grid=(1, 1, 1), block=(4, 1, 1), params=[values])
said = []
for words in commands:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        try:
            status = main(words)
        except SystemExit as ended:
            status = ended.code or 0
    said.append([status, out.getvalue()])
found = {{"values": values.tolist(), "load": tilewright.load.__name__, "said": said}}
print(json.dumps(found | {{"version": tilewright.__version__}}))
"""
SPEC = ["--m", "64", "--n", "64", "--k", "64"]
COMMANDS = {
    "compiler not installed": ["--version"],
    "schedule   64x16x64": ["explain", "schedule", *SPEC],
    "usage": ["emulate", "--help"],
    "error": ["run", *SPEC],
}


@pytest.fixture(scope="module")
def limited():
    """What a process without the compiler's packages finds; it imports all of the runtime first."""
    files = [path.relative_to(ROOT) for path in sorted((ROOT / "runtime").rglob("*.py"))]
    names = [".".join(("tilewright", *path.with_suffix("").parts)) for path in files]
    modules = [name for name in names if name not in OF_TORCH]
    return json.loads(in_child(LIMITED, json.dumps([modules, [*COMMANDS.values()]])))


def test_the_runtime_is_imported_and_emulates_without_what_the_compiler_needs(limited):
    assert limited["values"] == [0.0, 2.0, 4.0, 6.0]
    assert (limited["load"], limited["version"]) == ("load", tilewright.__version__)


def test_the_command_line_works_as_far_as_it_can_without_the_compiler(limited):
    for says, (status, said) in zip(COMMANDS, limited["said"], strict=True):
        assert says in said
        assert status == (1 if says == "error" else 0), said


def test_the_command_line_names_the_extra_that_is_missing(limited):
    rule = "torch_mlir: must be installed for this, got none"
    assert limited["said"][-1] == [1, f"error: {rule}; {CURE}\n"]


def test_a_bundle_runs_on_the_command_line_without_mlir(tmp_path):
    """It takes torch alone, of which the inputs are."""
    path = str(tmp_path / "matmul.zip")
    compiled = tilewright.compile(tilewright.MatmulSpec(m=64, n=32, k=32))
    as_bundle(compiled, path)
    code = "import sys; sys.modules.update(dict.fromkeys(('torch_mlir', 'mlir')))\n"
    code += "from tilewright.tools.main import main; sys.exit(main(['run', sys.argv[1]]))"
    assert "PASS  all 2048 elements" in in_child(code, path)


def test_a_public_name_says_which_extra_it_needs():
    code = f"""{BLOCKED}
import tilewright, tilewright.nn
for get in (lambda: tilewright.matmul, lambda: tilewright.nn.Linear):
    try:
        get()
    except ModuleNotFoundError as error:
        print(error)
"""
    rule = f"must be installed for this, got none; {CURE}"
    assert in_child(code).splitlines() == [f"torch_mlir: {rule}", f"torch: {rule}"]


def test_a_module_of_ours_that_is_missing_is_no_extra(monkeypatch):
    monkeypatch.setitem(tilewright._HOMES, "lost", ("compiler.lost", "lost"))
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tilewright\.compiler\.lost'"):
        tilewright.lost  # noqa: B018


def test_python_runs_the_package_as_the_command():
    words = [sys.executable, "-m", "tilewright"]
    said = [
        subprocess.run([*words, *more], capture_output=True, text=True)
        for more in (["--version"], [])
    ]
    assert said[0].stdout.startswith(f"tilewright {tilewright.__version__}\n")
    assert (said[0].returncode, said[1].returncode) == (0, 2)
    assert said[1].stderr.startswith("error: tilewright: a command must be named, got none")


def test_every_folder_of_python_is_installed_and_nothing_else():
    setuptools = project()["tool"]["setuptools"]
    folders = ("compiler", "dialects", "passes", "runtime", "tools")
    tops = {"package": "tilewright", **{each: f"tilewright.{each}" for each in folders}}
    assert setuptools["package-dir"] == {name: folder for folder, name in tops.items()}
    files = [path.relative_to(ROOT) for top in tops for path in (ROOT / top).rglob("*.py")]
    found = {".".join((tops[file.parts[0]], *file.parent.parts[1:])) for file in files}
    assert sorted(found) == sorted(setuptools["packages"])


def test_the_package_says_that_it_is_typed_and_installs_the_mark():
    assert (ROOT / "package" / "py.typed").exists()
    assert project()["tool"]["setuptools"]["package-data"]["tilewright"] == ["py.typed"]


def test_what_runs_kernels_needs_nothing_of_what_compiles_them():
    names = [each.split(">")[0] for each in project()["project"]["dependencies"]]
    assert names == ["ml_dtypes", "numpy", "rich"]


def test_what_the_compiler_had_before_the_package_is_the_same():
    from tilewright.compiler import compile_module, matmul

    assert (compile_module, matmul) == (tilewright.compile_module, tilewright.matmul)
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        import_module("tilewright.compiler").other  # noqa: B018


PUBLIC = ("", ".layout", ".nn", ".runtime", ".runtime.emulator", ".scales", ".torch")


@pytest.mark.parametrize("module", PUBLIC)
def test_each_argument_of_a_public_function_is_explained_where_it_stands(module):
    home = import_module(f"tilewright{module}")
    named = [getattr(home, name) for name in home.__all__]
    assert not [each for each in named if callable(each) and not inspect.getdoc(each)]
    for function in filter(inspect.isfunction, named):
        words = set(re.findall(r"\w+", inspect.getdoc(function) or ""))
        assert set(inspect.signature(function).parameters) <= words, function.__name__
