"""One way to say: compile this, run it on poisoned outputs, compare every element."""

from functools import partial

import pytest
from sampling import in_share

from tilewright.runtime import emulator

RACES_CHECKED = 4
"""One test in so many looks for races, too, and every one that goes over seeds, or with `--all`."""


@pytest.fixture(autouse=True)
def without_most_cubins(ptxas_for_a_share):
    """No number depends on the cubin."""


@pytest.fixture
def checked_level(request):
    """What the emulator checks in a test."""
    about_orders = "seed" in request.fixturenames
    return "full" if about_orders or in_share(request, "races", RACES_CHECKED) else "fast"


@pytest.fixture(autouse=True)
def calls_check_as_much(checked_level, monkeypatch):
    """What a call of a function checks, which cannot be told."""
    monkeypatch.setattr(emulator, "launch", partial(emulator.launch, check=checked_level))


@pytest.fixture
def check_matmul(checked_level):
    """check_matmul(source, identity=, seed=, **compile options) runs on the emulator.

    Asserts that every element is within its float32 bound of the float64 product; returns what was
    compiled and the emulator's report.
    """
    from tilewright.compiler.driver import compile_matmul
    from tilewright.runtime.bundles.bundle import Bundle, seal
    from tilewright.runtime.bundles.manifest import outputs
    from tilewright.runtime.judge.gaps import refuse_written_gaps
    from tilewright.runtime.judge.reference import compare, expected_output, to_float64
    from tilewright.runtime.launch.devices import open_device
    from tilewright.tools.runs.inputs import make_tensors

    def check(source, *, identity=None, seed=0, **options):
        compiled = compile_matmul(source, **options)
        cubin = compiled.assembled.cubin
        bundle = Bundle(seal(compiled.manifest, compiled.ptx, cubin), compiled.ptx, cubin)
        tensors = make_tensors(bundle.manifest, seed, identity)
        report = open_device("emulator").launch(bundle, tensors, seed, check=checked_level)
        for c in outputs(bundle.manifest):
            refuse_written_gaps(c["name"], tensors[c["name"]])
            actual = to_float64(tensors[c["name"]], c["dtype"])
            expected = expected_output(bundle.manifest, tensors, name=c["name"])
            comparison = compare(expected, actual, c["dtype"], c["name"])
            assert comparison.passed, comparison
        return compiled, report

    return check
