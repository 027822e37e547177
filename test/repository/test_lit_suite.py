"""The lit suite as one pytest test, so that `pytest` alone runs everything."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


def test_every_lit_test_passes():
    assert any(TESTS.rglob("*.mlir"))
    lit = "from lit.main import main; main()"  # python -m lit.main does nothing
    command = [sys.executable, "-c", lit, "--verbose", "--workers=2", str(TESTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or "Passed" not in done.stdout:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
