"""Temporary folders go with their process; what a killed one left, the next removes."""

import subprocess
import sys
import tempfile

import pytest

from tilewright.runtime import scratch

KEEPING = (
    "import time; from tilewright.runtime.scratch import scratch_folder\n"
    "with scratch_folder() as folder: print(folder, flush=True); time.sleep(1000)"
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_block_and_by_an_exception_too(place):
    with pytest.raises(KeyboardInterrupt), scratch.scratch_folder() as folder:
        (folder / "deep").mkdir()
        (folder / "deep/kernel.ptx").write_text("ptx")
        assert folder.parent == place
        raise KeyboardInterrupt
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_nothing_else(place):
    process = subprocess.Popen([sys.executable, "-c", KEEPING], stdout=subprocess.PIPE)
    left = process.stdout.readline().decode().strip()
    mine = place / "tilewright-mine"
    mine.mkdir()
    with scratch.scratch_folder() as held:
        scratch.sweep()
        assert {each.name for each in place.iterdir()} >= {mine.name, held.name}
        assert left in map(str, place.iterdir())  # its process lives
        process.kill()
        process.communicate()
        scratch.sweep()
        assert set(place.iterdir()) == {mine, held}
