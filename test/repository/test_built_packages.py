"""What is built of the tree: with a C compiler the extension too, without one all else."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("compiler", "dialects", "package", "passes", "runtime", "tools")
BESIDE = ("benchmarks", "docs", "examples", "test", "typings")
"""What a source distribution has beside the packages."""
FILES = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "Makefile", "constraints.txt")
BUILD = "import sys; from setuptools import build_meta; build_meta.{}(sys.argv[1])"
ASK = "from tilewright.runtime.relaunch import extension; print(extension() is not None)"


@pytest.fixture
def built(tmp_path):
    """built(kind, compiler): the wheel, or the sdist, of a copy of the tree."""
    pytest.importorskip("setuptools", minversion="77.0.3")
    tree = tmp_path / "tree"
    left_out = shutil.ignore_patterns("__pycache__", "*.so")
    for folder in (*FOLDERS, *BESIDE):
        shutil.copytree(ROOT / folder, tree / folder, ignore=left_out)
    for name in FILES:
        shutil.copy(ROOT / name, tree / name)

    def build(kind, compiler="cc"):
        words = [sys.executable, "-c", BUILD.format(f"build_{kind}"), str(tmp_path)]
        said = subprocess.run(
            words,
            cwd=tree,
            env={**os.environ, "CC": compiler},
            capture_output=True,
            text=True,
            check=False,
        )
        assert said.returncode == 0, said.stderr
        (made,) = [each for each in tmp_path.iterdir() if each.is_file()]
        return made

    return build


def ask(folder):
    """Whether the package in a folder launches by the extension."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("TILEWRIGHT_LAUNCH", None)
    words = [sys.executable, "-S", "-c", ASK]
    said = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return said.stdout.strip() == "True"


@pytest.mark.parametrize("compiler", ["cc", "false"])
def test_a_wheel_has_the_extension_where_there_is_a_compiler(built, compiler, tmp_path):
    if shutil.which("cc") is None and compiler == "cc":
        pytest.skip("a C compiler is needed")
    wheel = zipfile.ZipFile(built("wheel", compiler))
    found = [name for name in wheel.namelist() if name.endswith(".so")]
    assert len(found) == (compiler == "cc")
    wheel.extractall(tmp_path / "installed")
    assert ask(tmp_path / "installed") is (compiler == "cc")


def test_the_sources_bring_the_extensions_own_and_what_stands_beside_packages(built):
    with tarfile.open(built("sdist")) as archive:
        names = [Path(name).parts[1:] for name in archive.getnames()]
    assert ("runtime", "_relaunch.c") in names
    assert {(name,) for name in (*FILES, *BESIDE)} <= {name[:1] for name in names}
    assert ("test", "conftest.py") in names
