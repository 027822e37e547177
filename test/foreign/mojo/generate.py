"""Compiles the kernels of this folder ahead of time with Mojo, without a GPU. For each launch file
KERNEL.CHIP.json, which is written by hand, KERNEL.mojo becomes KERNEL.CHIP.ptx.

pip install mojo==1.2.0 max-mojo-libs==26.7.0 max-core==26.7.0
python test/foreign/mojo/generate.py [KERNEL ...]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parent
MOJO = Path(sys.executable).parent / "mojo"


def main(names: list[str]) -> None:
    """Write KERNEL.CHIP.ptx of every kernel named, or of all."""
    version = subprocess.run([MOJO, "--version"], check=True, capture_output=True, text=True)
    for launch in sorted(FOLDER.glob("*.json")):
        name, chip = launch.stem.split(".")
        if not names or name in names:
            made_by = f"{name}.mojo for {chip}, written by generate.py"
            text = f"// Mojo {version.stdout.split()[1]}: {made_by}\n{compiled(name, chip)}"
            launch.with_suffix(".ptx").write_text(text)
            print(launch.stem, f"{len(text) >> 10} KiB")


def compiled(name: str, chip: str) -> str:
    """The PTX that the program of a source prints, which it holds for its accelerator."""
    with TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        options = [f"--target-accelerator={chip}", "-o", program]
        subprocess.run([MOJO, "build", *options, FOLDER / f"{name}.mojo"], check=True)
        text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return text[text.index(".version") :]


if __name__ == "__main__":
    main(sys.argv[1:])
