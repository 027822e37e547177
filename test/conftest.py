"""What every test may use: a GPU, a cache, and golden files; and which of large families run."""

import functools
import gc
import os
import random
import sys
import tempfile
import zlib
from contextlib import nullcontext
from pathlib import Path

import pytest
import sampling
from hypothesis import settings

ASSEMBLED = 8
"""The kernels of one test in so many go through ptxas, with `--all` those of every test."""

CALLS_CHECKED = 4
"""One test of calls in so many looks for races, with `--all` every one."""

# Hundreds of tests start a process of ours, which would compile all sources anew for a second.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Each process of xdist has a core: threads of numpy's and torch's would wait for each other there.
if "PYTEST_XDIST_WORKER" in os.environ:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

# Torch keeps graphs and what it knew of sizes for the next process: a test whose graph another test
# left would find that the provider never saw it. What it compiles from C++ is kept for the run.
GRAPH_CACHES = (
    "TORCHINDUCTOR_FX_GRAPH_CACHE",
    "TORCHINDUCTOR_AUTOGRAD_CACHE",
    "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_LOCAL_PGO",
)
os.environ.update(dict.fromkeys(GRAPH_CACHES, "0"))
# What the processor says it has is not tried by compiling and loading a program for each of it.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")

CACHES = {"TILEWRIGHT_CACHE": "ours", "TORCHINDUCTOR_CACHE_DIR": "torchs"}
"""Name the folders of kernels, which the processes of one run of tests share with no other run."""


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files instead of comparing"
    )
    parser.addoption(
        "--all",
        action="store_true",
        help="run all of what `sweep` and `pairwise` mark, and arrays of strength three",
    )


def pytest_configure(config):
    # Whoever runs the tests twice draws the same; `--all` draws anew. On a busy machine an example
    # of microseconds may take as long as hypothesis allows by default.
    drawn_alike = not config.getoption("--all")
    settings.register_profile("drawn", derandomize=drawn_alike, deadline=None)
    settings.load_profile("drawn")
    # Tests make many objects and few cycles: with the default of 700 a tenth of their time goes.
    # More than 50,000 save another hundredth and leave gigabytes of finished launches lying.
    gc.set_threshold(50_000, 20, 20)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="tilewright-tests-", ignore_cleanup_errors=True)
        config.add_cleanup(folder.cleanup)
        os.environ.update({name: f"{folder.name}/{of}" for name, of in CACHES.items()})


def pytest_collection_finish():
    gc.freeze()  # modules and items stay: no collection looks at them again


def pytest_generate_tests(metafunc):
    array = metafunc.definition.get_closest_marker("array")
    if array:
        strength = 3 if metafunc.config.getoption("--all") else (*array.args, 2)[0]
        rows = sampling.covering_array(array.kwargs, strength)
        metafunc.parametrize(tuple(array.kwargs), rows, ids=sampling.name_of)


def pytest_collection_modifyitems(config, items):
    # xdist gives each process a run of tests: one of them, not all, loads the compiler of torch.
    items.sort(key=lambda item: not _compiles_with_torch(item))
    if config.getoption("--all"):
        return
    chosen = sampling.choose(items)
    kept = {id(item) for item in chosen}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = chosen


WITH_TORCH = ("test_documents.py", "test_model_check.py")


def _compiles_with_torch(item) -> bool:
    """Whether its file imports torch, or runs what does."""
    module = getattr(item, "module", None)
    return hasattr(module, "torch") or item.path.name in WITH_TORCH


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """A test draws the same whichever ran before it, in this process or another."""
    seed = zlib.crc32(item.nodeid.encode())
    random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


@pytest.fixture
def gpu():
    """The first GPU, as torch names it; without one the test is skipped and says why."""
    import torch

    from tilewright.runtime.launch.devices import why_no_gpu

    reason = why_no_gpu()
    if reason is None and not torch.cuda.is_available():
        reason = f"torch {torch.__version__} sees no GPU"
    if reason:
        pytest.skip(f"no CUDA device: {reason}")
    return "cuda:0"


@pytest.fixture(scope="module")
def fresh_cache(tmp_path_factory):
    """A folder of the module's own for compiled kernels, and nothing of others in memory."""
    from tilewright.compiler.calls.kernels import kernel_cache, lookup

    def forget():
        kernel_cache.cached_bundle.cache_clear()
        lookup._kernels.clear()
        lookup._seen.clear()

    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv(kernel_cache.VARIABLE, str(folder))
        forget()
        yield folder
    forget()


@pytest.fixture
def ptxas_for_a_share(request, monkeypatch):
    """Leaves ptxas out of most tests: what runs on the emulator is PTX."""
    from tilewright.compiler import driver
    from tilewright.compiler.backend import Assembled

    if not sampling.in_share(request, "ptxas", ASSEMBLED):
        nothing = Assembled(b"", 0, 0, 0, 0, 0, "")
        monkeypatch.setattr(driver, "assemble", lambda *_, **__: nothing)
        monkeypatch.setattr(driver, "assembler_ahead", lambda **_: nullcontext())


@pytest.fixture
def races_for_a_share(request, monkeypatch):
    """Leaves the search for races out of most tests whose calls run on the emulator by default."""
    from tilewright.runtime import emulator

    if not sampling.in_share(request, "races", CALLS_CHECKED):
        monkeypatch.setattr(emulator, "launch", functools.partial(emulator.launch, check="fast"))


@pytest.fixture
def golden(request):
    """golden(text, suffix) compares with golden/<test name><suffix> beside the test file."""

    def compare(text: str, suffix: str) -> None:
        path = Path(request.path).parent / "golden" / f"{request.node.originalname}{suffix}"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing; run pytest --update-golden"
        assert text == path.read_text(), f"differs from {path}; pytest --update-golden accepts it"

    return compare
