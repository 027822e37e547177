"""Compiles the kernels of this folder ahead of time with the CuTe DSL, without a GPU. For each
launch file KERNEL.CHIP.json, which is written by hand, KERNEL.py becomes KERNEL.CHIP.ptx.

pip install nvidia-cutlass-dsl==4.8.1 nvidia-cutlass-dsl-libs-cu13==4.8.1
python test/foreign/cute_dsl/generate.py [KERNEL ...]
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parent


def main(names: list[str]) -> None:
    """Write KERNEL.CHIP.ptx of every kernel named, or of all."""
    for launch in sorted(FOLDER.glob("*.json")):
        name, chip = launch.stem.split(".")
        if not names or name in names:
            compile_alone(name, chip)


def compile_alone(name: str, chip: str) -> None:
    """Compile one kernel in another process; the compiler reads its settings once a process."""
    command = [sys.executable, __file__, "--compile", name, chip]
    with TemporaryDirectory() as dumps:
        settings = {"ARCH": chip, "KEEP": "ptx", "DUMP_DIR": dumps, "DISABLE_FILE_CACHING": "1"}
        environment = {f"CUTE_DSL_{key}": value for key, value in settings.items()}
        subprocess.run(command, check=True, env={**os.environ, **environment})


def write(name: str, chip: str) -> None:
    """Compile one kernel for this process's chip and write its PTX."""
    import cutlass
    import cutlass.cute as cute

    module = import_module(name)
    text = cute.compile(module.host, *module.ARGUMENTS).artifacts.PTX
    made_by = f"// CuTe-DSL {cutlass.__version__}: {name}.py for {chip}, written by generate.py\n"
    (FOLDER / f"{name}.{chip}.ptx").write_text(made_by + text)
    print(f"{name}.{chip}", f"{len(text) >> 10} KiB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compile"]:
        write(*sys.argv[2:])
    else:
        main(sys.argv[1:])
