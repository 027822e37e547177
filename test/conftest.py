"""What every test may use: the devices to run on, and golden files."""

from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files instead of comparing"
    )


@pytest.fixture(params=["emulator", "cuda"])
def device_name(request):
    """Each device in turn; a device that is not here skips the test and says so."""
    from tilewright.runtime.devices import why_no_gpu

    reason = why_no_gpu() if request.param == "cuda" else None
    if reason:
        pytest.skip(reason)
    return request.param


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
