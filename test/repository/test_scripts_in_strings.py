"""Scripts that tests hand to other processes: pyright reads none, without a GPU some never run."""

import ast
import importlib
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def imports_in_strings(source: str) -> Iterator[tuple[str, str]]:
    """(module, name) of each `from tilewright… import …` in a string that is Python."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if "from tilewright" not in node.value:
            continue
        try:
            script = ast.parse(textwrap.dedent(node.value))
        except SyntaxError:
            continue
        for statement in ast.walk(script):
            if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(
                "tilewright"
            ):
                yield from ((str(statement.module), alias.name) for alias in statement.names)


def exists(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(
            importlib.import_module(f"{module}.{name}")
        )
    except ModuleNotFoundError:
        return False


def test_a_script_in_a_test_imports_names_that_exist():
    found = {
        (str(path.relative_to(ROOT)), *each)
        for path in sorted((ROOT / "test").rglob("*.py"))
        for each in imports_in_strings(path.read_text())
    }
    assert len(found) > 15
    assert [] == [
        f"{path}: from {module} import {name}"
        for path, module, name in sorted(found)
        if not exists(module, name)
    ]


def test_a_name_that_moved_is_found():
    script = 'SCRIPT = """\nfrom tilewright.compiler.calls import kernel_cache\n"""'
    assert list(imports_in_strings(script)) == [("tilewright.compiler.calls", "kernel_cache")]
    assert not exists("tilewright.compiler.calls", "kernel_cache")
