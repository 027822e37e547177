"""Compiles the kernels of this folder ahead of time with TileLang, without a GPU. For each
launch file KERNEL.CHIP.json, which is written by hand, KERNEL.py becomes CUDA C++ and then
KERNEL.CHIP.ptx.

pip install tilelang==0.1.15 nvidia-cuda-nvcc==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
python test/foreign/tilelang/generate.py [KERNEL ...]
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import nvidia
import tilelang
from tilelang import tvm

FOLDER = Path(__file__).parent
PACKAGE = Path(tilelang.__file__).parent


def main(names: list[str]) -> None:
    """Write KERNEL.CHIP.ptx of every kernel named, or of all."""
    sys.path.append(str(FOLDER / "faults"))
    for launch in sorted(FOLDER.glob("**/*.json")):
        name, chip = launch.stem.split(".")
        if not names or name in names:
            text = through_nvcc(lowered(name, chip), chip)
            made_by = f"// TileLang {tilelang.__version__}: {name}.py for {chip}"
            launch.with_suffix(".ptx").write_text(f"{made_by}, written by generate.py\n{text}")
            print(launch.stem, f"{len(text) >> 10} KiB")


def lowered(name: str, chip: str) -> str:
    """The CUDA C++ of a kernel."""
    module = import_module(name)
    target = tvm.target.Target({"kind": "cuda", "arch": chip})
    with target, tvm.transform.PassContext(config=getattr(module, "OPTIONS", {})):
        options = {"enable_host_codegen": False, "enable_device_compile": False}
        return tilelang.lower(module.KERNEL, target=target, **options).kernel_source


def through_nvcc(source: str, chip: str) -> str:
    """The PTX of CUDA C++ that includes TileLang's templates."""
    toolkit = toolkit_folder()
    folders = [toolkit / "include", toolkit / "include" / "cccl", PACKAGE / "src"]
    folders.append(PACKAGE / "3rdparty" / "cutlass" / "include")
    options = ["-ptx", "-O3", "-std=c++17", "-w", f"-arch={chip}", "-DENABLE_BF16"]
    options += [f"-I{folder}" for folder in folders]
    command = [str(toolkit / "bin" / "nvcc"), *options, "-x", "cu", "-", "-o", "-"]
    result = subprocess.run(command, check=True, input=source, stdout=subprocess.PIPE, text=True)
    return result.stdout


def toolkit_folder() -> Path:
    """Where the wheels put bin/nvcc; raises FileNotFoundError without them."""
    for folder in nvidia.__path__:
        if (Path(folder) / "cu13" / "bin" / "nvcc").is_file():
            return Path(folder) / "cu13"
    raise FileNotFoundError("nvcc: must be installed from PyPI, got none; see this file's top")


if __name__ == "__main__":
    main(sys.argv[1:])
