"""lit: runs the RUN lines of every .mlir file under test/ against this checkout."""

import os
import sys
from pathlib import Path

import lit.formats

config.name = "tilewright"  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.excludes = ["inputs", "golden", "found", "op_sources"]  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # noqa: F821
config.test_exec_root = str(Path(__file__).parent.parent / "build" / "lit")  # noqa: F821

binaries = os.path.dirname(sys.executable)
config.environment["PATH"] = os.pathsep.join([binaries, os.environ["PATH"]])  # noqa: F821
for name in ("TILEWRIGHT_PTXAS", "TILEWRIGHT_DEBUG"):
    if name in os.environ:
        config.environment[name] = os.environ[name]  # noqa: F821

# In the process itself: with -m, every FILE is read in a child, which takes 0.1 s more.
in_process = "import sys; from tilewright.tools.main import main; sys.exit(main(sys.argv[1:]))"
tool = f'{sys.executable} -c "{in_process}"'
# The long text, whose types a CHECK line can name.
config.substitutions.append((r"\btilewright opt\b", f"{tool} opt --long"))  # noqa: F821
config.substitutions.append((r"\btilewright(?= (?:compile|run)\b)", tool))  # noqa: F821
