"""Running the command line in this process."""

import json
from dataclasses import dataclass

import pytest

from tilewright.tools.main import main


@dataclass
class Ran:
    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def tilewright(capsys):
    """tilewright("run", "--m", "4", …) gives the exit status, stdout and stderr."""

    def call(*words) -> Ran:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return call
