"""torch's own helpers for block-scaled types, as reference."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

NAMES = ("ceil_div", "to_blocked", "to_mxfp", "_bfloat16_to_float4_e2m1fn_x2", "pack_uint4",
         "down_size", "_f32_to_floatx_unpacked", "_n_ones")  # fmt: skip
CONSTANTS = ("EBITS_F32", "MBITS_F32", "F32_EXP_BIAS", "FP4_EBITS", "FP4_MBITS")


@pytest.fixture(scope="session")
def of_torch():
    """Functions of torch's test helpers, without the module's imports, which need more wheels."""
    source = Path(torch.__file__).parent / "testing/_internal/common_quantized.py"
    kept = [node for node in ast.parse(source.read_text()).body if is_wanted(node)]
    if len(kept) < len(NAMES):
        pytest.skip("this torch has no helpers for block-scaled types")
    found = {"torch": torch, "Tensor": torch.Tensor}
    exec(compile(ast.Module(kept, []), str(source), "exec"), found)
    return SimpleNamespace(**{name: found[name] for name in NAMES})


def is_wanted(node):
    if isinstance(node, ast.FunctionDef):
        return node.name in NAMES
    names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return isinstance(node, ast.Assign) and bool(names & set(CONSTANTS))
