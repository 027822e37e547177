"""Imports run one way: tools → compiler → passes → dialects, and runtime stands on the ground."""

import ast
import functools
import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from draw_packages import imports_of

from tilewright.compiler.own_sources import SOURCES

ROOT = Path(__file__).parent.parent.parent
ALLOWED = {
    "runtime": set(),
    "dialects": {"runtime"},  # its tables of element types and of sizes, and its collector
    "passes": {"dialects"},
    "compiler": {"passes", "dialects", "runtime"},
    "tools": {"compiler", "passes", "dialects", "runtime"},
}
MLIR_WHEELS = {"mlir", "torch_mlir"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@functools.cache
def imported_modules(path: Path) -> set[str]:
    """Absolute dotted names of what a file imports; ours start with the top-level folder."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    found = set()
    for node in imports_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            found |= _from_import(node, package)
    return found


def _from_import(node: ast.ImportFrom, package: list[str]) -> set[str]:
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*base, *([node.module] if node.module else [])])
    return {module} | {f"{module}.{alias.name}".strip(".") for alias in node.names}


def files_of(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def folders_of(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names} & set(ALLOWED)


@pytest.mark.parametrize("folder", ALLOWED)
def test_a_folder_imports_only_from_its_left(folder):
    for path in files_of(folder):
        imported = imported_modules(path)
        assert folders_of(imported) <= ALLOWED[folder] | {folder}, path
        absolute = [name for name in imported if name.split(".")[0] == "tilewright"]
        assert not absolute, f"{path} must import relatively, got {absolute}"


LAYERS = {
    "compiler/importers": {"compiler.importers", "compiler.spec"},
    "compiler/schedule": {"compiler.schedule", "compiler.spec"},
}
"""Of the compiler, what is imported by that which compiles; `compiler/calls` stands on all."""


@pytest.mark.parametrize("folder", LAYERS)
def test_importers_and_schedules_know_nothing_of_what_compiles(folder):
    for path in files_of(folder):
        ours = {name for name in imported_modules(path) if name.startswith("compiler.")}
        assert all(name.startswith(tuple(LAYERS[folder])) for name in ours), (path, ours)


CALLERS = ("calls", "inductor")
"""Rooms of the compiler that call kernels: by themselves, and in graphs of torch."""


def test_only_the_public_names_and_calls_know_of_calls():
    for path in files_of("compiler") + files_of("tools"):
        calls = [name for name in imported_modules(path) if name.startswith("compiler.calls")]
        assert not calls or path.relative_to(ROOT).parts[1] in CALLERS, (path, calls)


@pytest.mark.parametrize("folder", ["dialects", "passes", "compiler"])
def test_no_two_files_import_each_other_wherever_the_import_stands(folder):
    modules = {module_name(path): imported_modules(path) for path in files_of(folder)}
    assert not circles({name: found - packages_of(name) for name, found in modules.items()})


def packages_of(module: str) -> set[str]:
    """The module itself and the packages around it."""
    return {*itertools.accumulate(module.split("."), "{}.{}".format)}


def circles(left: dict[str, set[str]]) -> list[str]:
    """Modules that import each other, or import such: what is left when leaves are taken off."""
    while leaves := {name for name, imported in left.items() if not imported & set(left)}:
        left = {name: imported for name, imported in left.items() if name not in leaves}
    return sorted(left)


def test_dialects_take_only_tables_and_what_threads_share_from_the_runtime():
    groups = dict.fromkeys(("tile.groups", "ragged_maps"), "runtime.group_sizes")
    groups |= {
        "epilogue": "runtime.math_policies",
        "context": ("runtime.collector", "runtime.locks"),
    }
    tables = {"dtypes": "runtime.element_types", **groups}
    for path in files_of("dialects"):
        ours = {name for name in imported_modules(path) if name.startswith("runtime.")}
        file = module_name(path).removeprefix("dialects.")
        own = tables.get(file, "runtime.ptx_sizes")
        known = (*([own] if isinstance(own, str) else own), "runtime.ptx_sizes")
        assert all(name.startswith(known) for name in ours), path


def test_the_key_of_a_cached_kernel_knows_every_source_that_makes_it():
    """Else a changed table would find the kernels of before."""
    known = {path for pattern in SOURCES for path in ROOT.glob(pattern)}
    makers = [path for each in ("dialects", "passes", "compiler/spec") for path in files_of(each)]
    taken = {name for path in makers for name in imported_modules(path)}
    paths = {ROOT / f"{name.replace('.', '/')}.py" for name in taken if name.startswith("runtime.")}
    files = {path for path in paths if path.is_file()}
    assert len(files) > 3
    assert files <= known


def test_the_reference_shares_no_reading_with_the_compiler():
    of_dialects = {"dialects", "dialects.context", "dialects.errors", "dialects.mlir"}
    names = ("block_scales", "double_sums", "gaps", "intervals", "relaxed", "sums")
    of_judge = {f"runtime.judge.{name}" for name in names}
    of_runtime = {"runtime.element_types", *of_judge}
    for path in files_of("tools/oracle"):
        modules = {
            name
            for name in imported_modules(path)
            if (ROOT / f"{name.replace('.', '/')}.py").exists() or (ROOT / name).is_dir()
        }
        ours = {name for name in modules if not name.startswith("tools.oracle")}
        assert ours <= of_dialects | of_runtime | {"runtime", "runtime.judge"}, path


def test_one_file_names_the_mlir_wheel():
    naming = {
        path.relative_to(ROOT).as_posix()
        for folder in ALLOWED
        for path in files_of(folder)
        if MLIR_WHEELS & {name.split(".")[0] for name in imported_modules(path)}
    }
    assert naming <= {"dialects/mlir.py"}


def test_layout_algebra_and_targets_know_no_mlir():
    for name in ("layout.py", "target.py", "dtypes.py"):
        assert not {"dialects.mlir"} & imported_modules(ROOT / "dialects" / name)


def test_the_emulator_knows_nothing_of_the_runtime_but_errors_files_processes_and_collector():
    known = tuple(f"runtime.{name}" for name in ("errors", "atomic", "child", "collector"))
    for path in files_of("runtime/emulator"):
        ours = {name for name in imported_modules(path) if name.startswith("runtime.")}
        outside = {name for name in ours if not name.startswith("runtime.emulator")}
        assert all(name.startswith(known) for name in outside), (path, outside)


def test_only_one_file_may_import_cuda_python():
    naming = {
        path.relative_to(ROOT).as_posix()
        for folder in ALLOWED
        for path in files_of(folder)
        if "cuda" in {name.split(".")[0] for name in imported_modules(path)}
    }
    assert naming == {"runtime/gpu/driver.py"}


def test_runtime_never_imports_torch_when_it_is_loaded():
    code = "import sys, tilewright.runtime; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    for path in files_of("runtime"):
        top_level = ast.Module(
            [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.Import)], []
        )
        names = {alias.name for node in top_level.body for alias in node.names}
        assert "torch" not in names or path.name == "torch_op.py", path


def test_compiling_loads_no_emulator():
    code = "import sys, tilewright.compiler.driver as _; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert [name for name in shown.stdout.split() if ".emulator" in name] == []


def test_compiling_loads_no_definitions_of_linalg_ops_nor_numpy_and_they_come_when_asked_for():
    code = """if True:
        import sys
        from tilewright import MatmulSpec, compile
        from tilewright.dialects.mlir import ir, linalg
        compile(MatmulSpec(m=64, n=64, k=64))
        definitions = f"{linalg.__name__}.opdsl"
        print(definitions in sys.modules, "numpy" in sys.modules)
        print(callable(linalg.matmul), definitions in sys.modules)
        with ir.Context() as context:
            made = ir.AttrBuilder.get("I64ElementsAttr")([3, 7], context=context)
            print(ir.DenseIntElementsAttr(made)[1])
        print("numpy" in sys.modules, sys.modules["numpy"].add(2, 3))
    """
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.split() == ["False", "False", "True", "True", "7", "True", "5"]


ROOMS = ("ptx", "machine", "tensor", "copies", "instructions", "checks", "observe", "host")
"""Of the emulator: a room imports only rooms to its left; errors and interfaces are the ground."""


@functools.cache
def emulator_imports(path: Path) -> set[str]:
    """The emulator's modules that one of its files imports."""
    own = module_name(path)
    return {name for name in imported_modules(path) & emulator_modules() if name != own}


@functools.cache
def emulator_modules() -> set[str]:
    return {module_name(path) for path in files_of("runtime/emulator")}


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[2] in ROOMS else None


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_of_the_emulator_imports_only_from_its_left(room):
    allowed = {*ROOMS[: ROOMS.index(room) + 1], None}
    for path in files_of(f"runtime/emulator/{room}"):
        rooms = {room_of(name) for name in emulator_imports(path)}
        assert rooms <= allowed, (path, rooms - allowed)


def test_no_two_files_of_the_emulator_import_each_other():
    modules = {module_name(path): emulator_imports(path) for path in files_of("runtime/emulator")}
    assert not circles(modules)


def test_no_file_of_the_emulator_imports_for_types_alone():
    for path in files_of("runtime/emulator"):
        assert "TYPE_CHECKING" not in path.read_text(), path
