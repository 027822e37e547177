"""Files of torch.export.save, by the commands."""

import pytest
import torch
from torch import nn


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "layer.pt2"
    module = nn.Sequential(nn.Linear(64, 48, dtype=torch.float16), nn.GELU())
    program = torch.export.export(module, (torch.randn(40, 64, dtype=torch.float16),))
    torch.export.save(program, path)
    return path


def test_an_exported_program_is_run_and_compared(exported, tilewright, tmp_path):
    made = tilewright("run", exported, "-o", tmp_path / "layer.zip")
    assert made.status == 0
    assert f"reference  torch's own run of {exported}" in made.out
    ran = tilewright("run", tmp_path / "layer.zip")
    assert ran.status == 0
    assert "PASS  all 1920 elements" in ran.out


def test_a_file_that_is_no_exported_program_is_refused(tilewright, tmp_path):
    path = tmp_path / "broken.pt2"
    assert "must be a file of torch.export.save, got none" in tilewright("compile", path).err
    path.write_bytes(b"PK")
    refused = tilewright("compile", path)
    assert refused.status == 1
    assert f"error: {path}: must be a file of torch.export.save, got: " in refused.err
    assert "Traceback" not in refused.err
