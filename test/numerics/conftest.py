"""One way to say: compile this, run it on poisoned outputs, compare every element."""

import zlib

import pytest

ASSEMBLED = 4
"""The kernels of one test in so many go through ptxas, with `--all` those of every test."""


@pytest.fixture(autouse=True)
def ptxas_for_a_share(request, monkeypatch):
    """Leaves ptxas out of most tests: the emulator runs PTX, so no number depends on the cubin."""
    chosen = zlib.crc32(request.node.name.encode()) % ASSEMBLED == 0
    if not chosen and not request.config.getoption("--all"):
        from tilewright.compiler import driver

        monkeypatch.setattr(driver, "assemble", _not_assembled)


def _not_assembled(ptx, *, chip, allow_spills):
    from tilewright.compiler.backend import Assembled

    return Assembled(b"", 0, 0, 0, 0, 0, "")


@pytest.fixture
def check_matmul():
    """check_matmul(source, identity=, seed=, **compile options) runs on the emulator.

    Asserts that every element is within its float32 bound of the float64 product; returns what was
    compiled and the emulator's report.
    """
    from tilewright.compiler.driver import compile_matmul
    from tilewright.runtime.bundles.bundle import Bundle, seal
    from tilewright.runtime.bundles.manifest import output
    from tilewright.runtime.judge.reference import compare, expected_output, to_float64
    from tilewright.runtime.launch.devices import open_device
    from tilewright.tools.inputs import make_tensors

    def check(source, *, identity=None, seed=0, **options):
        compiled = compile_matmul(source, **options)
        cubin = compiled.assembled.cubin
        bundle = Bundle(seal(compiled.manifest, compiled.ptx, cubin), compiled.ptx, cubin)
        tensors = make_tensors(bundle.manifest, seed, identity)
        report = open_device("emulator").launch(bundle, tensors, seed)
        c = output(bundle.manifest)
        actual = to_float64(tensors[c["name"]], c["dtype"])
        comparison = compare(expected_output(bundle.manifest, tensors), actual, c["dtype"])
        assert comparison.passed, comparison
        return compiled, report

    return check
