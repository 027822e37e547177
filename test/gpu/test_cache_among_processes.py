"""Kernels for a GPU that are compiled once: for the next call, the next process, all at once."""

import os
import subprocess
import sys

import pytest
import torch

from tilewright import matmul
from tilewright.compiler.calls.kernels import kernel_cache
from tilewright.runtime import read_bundle

pytestmark = pytest.mark.usefixtures("gpu")
PROCESS = """
import sys
import torch
from tilewright import matmul
from tilewright.compiler.calls.kernels import kernel_cache

asked, compile_matmul = [], kernel_cache.compile_matmul


def count(*words, **options):
    asked.append(words)
    return compile_matmul(*words, **options)


kernel_cache.compile_matmul = count
generator = torch.Generator().manual_seed(5)
a, b = (torch.randint(-4, 5, (r, 72), generator=generator).bfloat16().cuda() for r in (136, 200))
assert matmul(a, b).equal((a.double() @ b.double().T).bfloat16())
print(len(asked))
"""


def start(folder):
    """A process that multiplies, checks, and prints how often it compiled."""
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS],
        env={**os.environ, kernel_cache.VARIABLE: str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )


def compilations(process):
    printed = process.communicate()[0]
    assert process.returncode == 0
    return int(printed)


def test_the_first_call_compiles_and_the_second_asks_nobody(draws, monkeypatch):
    a, b, asked = draws.normal(136, 72), draws.normal(200, 72), []
    compile_matmul = kernel_cache.compile_matmul

    def count(*words, **options):
        asked.append(words)
        return compile_matmul(*words, **options)

    monkeypatch.setattr(kernel_cache, "compile_matmul", count)
    first = matmul(a, b)
    monkeypatch.setattr(kernel_cache, "cached_bundle", None)
    assert matmul(a.clone(), b.clone()).equal(first)
    assert len(asked) == 1


def test_another_process_finds_the_kernel_on_disk(tmp_path):
    assert [compilations(start(tmp_path)) for _ in range(2)] == [1, 0]


def test_processes_at_the_same_time_leave_one_entry(tmp_path):
    running = [start(tmp_path) for _ in range(4)]
    assert all(compilations(process) <= 1 for process in running)
    (entry,) = tmp_path.iterdir()
    assert read_bundle(entry).manifest["target"].startswith("sm_")


@pytest.mark.parametrize("kept_bytes", [0, 5000])
def test_a_damaged_entry_is_compiled_again(tmp_path, kept_bytes):
    compilations(start(tmp_path))
    (entry,) = tmp_path.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(whole[:kept_bytes])
    assert [compilations(start(tmp_path)) for _ in range(2)] == [1, 0]
    assert entry.read_bytes() == whole


def test_a_folder_that_cannot_be_written_costs_a_warning(draws, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path / "file"))
    a, b = draws.integers(48, 72), draws.integers(88, 72)
    with pytest.warns(UserWarning, match=r"file must be writable, got .*; set TILEWRIGHT_CACHE$"):
        c = matmul(a, b)
    assert c.equal((a.double() @ b.double().T).to(torch.bfloat16))
