"""What the documents tell people to type does what it says: their shell blocks run, line by line.

Each block runs in a folder of its own, with the files that its page takes for granted. Left out are
lines of other programs, and those that take minutes; `test_documents.py` parses these.
"""

import re
import shlex
import shutil

import pytest
from test_documents import DOCUMENTS, ROOT

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.tools import main

MINUTES = re.compile(
    r"tilewright (conform|cute|triton|tune|model)\b|ladder(?!.* --(presets|no-run))|--ladder|"
    r"--scale$|--scale |run .*--m (1000|4096)|--k 320 -v$"
)
"""Conformance, tuning, whole ladders and models, large sizes, what needs other packages, and what
is a test of its own."""
TAKE_MINUTES = {"docs/conformance.md", "docs/torch.md"}
MODEL = "import torch\ndef build():\n    return torch.nn.Linear(64, 32), (torch.ones(16, 64),)\n"
SPEC = MatmulSpec(m=64, n=48, k=32)
LOADED = "tiling{tile=64x16x16},tma-insertion,swizzle-selection"


def read(name: str) -> str:
    return (ROOT / name).read_text()


def blocks() -> list[tuple[str, list[str]]]:
    """The shell blocks that have a command of ours: the page, and such commands in their order."""
    found = []
    for name in DOCUMENTS:
        for block in re.findall(r"```sh\n(.*?)```", read(name), re.DOTALL):
            lines = [re.split(r"\s+#", line)[0].strip() for line in block.splitlines()]
            ours = [line for line in lines if line.startswith("tilewright ")]
            ours = [line for line in ours if not MINUTES.search(line)]
            found += [(name, ours)] if ours else []
    return found


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A folder with what blocks name: a kernel with its launch, a bundle, sources, other times."""
    for folder in ("test", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "docs/roofline").mkdir(parents=True)
    examples = ROOT / "test/emulate/examples"
    text = (examples / "scaled_rows.ptx").read_text()
    (tmp_path / "kernel.ptx").write_text(text.replace("sm_100a", "sm_80"))  # for any chip
    shutil.copy(examples / "scaled_rows.json", tmp_path / "launch.json")
    (tmp_path / "measured.json").write_text('{"v1a": 539.8}')
    (tmp_path / "my_model.py").write_text(MODEL)
    (tmp_path / "matmul.mlir").write_text(SPEC.mlir_text())
    tiled = compile_matmul(SPEC, pipeline=LOADED, stop_after="swizzle-selection", until="mlir")
    (tmp_path / "kernel.mlir").write_text(tiled.mlir)
    as_bundle(compile_matmul(SPEC), tmp_path / "matmul.zip")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))


@pytest.mark.sweep(5)
@pytest.mark.parametrize(("page", "commands"), blocks(), ids=lambda each: str(each)[:40])
def test_the_commands_of_a_block_end_well(page, commands, given, capfd):
    for command in commands:
        status = main.main(shlex.split(command)[1:])
        assert status == 0, f"{page}: {command}\n{capfd.readouterr().err}"


def test_most_commands_of_the_documents_are_run():
    assert sum(len(commands) for _, commands in blocks()) > 40


def test_every_page_with_commands_has_some_that_are_run():
    typed = {name for name in DOCUMENTS if re.search(r"```sh\n([^`]*\n)?tilewright ", read(name))}
    assert typed - {page for page, _ in blocks()} == TAKE_MINUTES
