"""Launches in a folder, as `tilewright emulate` takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np


def save(folder: Path, number: int, text: str, fields: dict[str, Any]) -> None:
    """Write the PTX, the launch file and the contents of its tensors."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{number:03}"
    (folder / f"{stem}.ptx").write_text(text)
    tensors = []
    for tensor in fields["tensors"]:
        file = f"{stem}.{tensor['name']}.npy"
        np.save(folder / file, tensor["contents"])
        tensors.append({**tensor, "contents": {"file": file}})
    (folder / f"{stem}.json").write_text(
        json.dumps({**fields, "tensors": tensors}, indent=1) + "\n"
    )
