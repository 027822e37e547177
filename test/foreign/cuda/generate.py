"""Compiles the kernels of this folder ahead of time with nvcc, without a GPU. For each launch file
KERNEL.CHIP.json, which is written by hand, KERNEL.cu becomes KERNEL.CHIP.ptx.

pip install nvidia-cuda-nvcc==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
python test/foreign/cuda/generate.py [KERNEL ...]
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nvidia

FOLDER = Path(__file__).parent


def main(names: list[str]) -> None:
    """Write KERNEL.CHIP.ptx of every kernel named, or of all."""
    for launch in sorted(FOLDER.glob("*.json")):
        name, chip = launch.stem.split(".")
        if not names or name in names:
            text = compiled(name, chip)
            launch.with_suffix(".ptx").write_text(text)
            print(launch.stem, f"{len(text) >> 10} KiB")


def compiled(name: str, chip: str) -> str:
    """The PTX of a source, led by the line that says where it comes from."""
    toolkit = toolkit_folder()
    folders = [f"-I{toolkit / folder}" for folder in ("include", "include/cccl")]
    options = ["-ptx", "-O3", "-std=c++17", f"-arch={chip}", *folders]
    command = [str(toolkit / "bin" / "nvcc"), *options, f"{name}.cu", "-o", "-"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, cwd=FOLDER).stdout
    version = re.search(r"release \S+ V(\S+)", text)
    if version is None:
        raise ValueError(f"{name}.cu: must give PTX that names nvcc's release, got {text[:200]!r}")
    return f"// nvcc {version[1]}: {name}.cu for {chip}, written by generate.py\n{text}"


def toolkit_folder() -> Path:
    """Where the wheels put bin/nvcc; raises FileNotFoundError without them."""
    for folder in nvidia.__path__:
        if (Path(folder) / "cu13" / "bin" / "nvcc").is_file():
            return Path(folder) / "cu13"
    raise FileNotFoundError("nvcc: must be installed from PyPI, got none; see this file's top")


if __name__ == "__main__":
    main(sys.argv[1:])
