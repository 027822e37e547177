"""Published and measured speeds of the kernels that presets reproduce, with sources.

Nothing here was measured on a kernel of this compiler, except on the H200. The two series for
Blackwell are not on one clock: they were measured on other machines, with other inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Series:
    """A publication: what it measured, on which chip, and what cuBLAS reaches there."""

    name: str
    document: str
    chip: str
    gpu: str
    shape: tuple[int, int, int]
    cublas_tflops: float
    cublas_section: str

    @property
    def operations(self) -> int:
        """Multiplications and additions of the shape."""
        m, n, k = self.shape
        return 2 * m * n * k


@dataclass(frozen=True)
class Published:
    """A speed, and where it stands; `derived` says how, where it is not stated as such."""

    series: Series
    section: str
    tflops: float
    derived: str | None = None
    remark: str | None = None

    @property
    def us(self) -> float:
        """Microseconds that the speed means at the shape of the series."""
        return self.series.operations / self.tflops / 1e6

    @property
    def of_cublas(self) -> float:
        """Speed beside cuBLAS in the same series."""
        return self.tflops / self.series.cublas_tflops

    def source(self) -> str:
        """Document and section; how it was derived."""
        text = f"{self.series.name}, {self.section}"
        return text if self.derived is None else f"{text}: {self.derived}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "document": self.series.document,
            "section": self.section,
            "gpu": self.series.gpu,
            "shape": list(self.series.shape),
            "tflops": self.tflops,
            "us": self.us,
            "of_cublas": self.of_cublas,
            "derived": self.derived,
            "remark": self.remark,
        }


CUBE = (4096, 4096, 4096)
DUMMIES = Series(
    "dummies",
    "gau-nernst, tcgen05 for dummies",
    "sm_100a",
    "B200",
    CUBE,
    1506.74,
    "Closing remarks",
)
BLACKWELL = Series(
    "series",
    "A. Taha, J. Liu, H. Wang, A. Dakkak, Matrix Multiplication on Blackwell",
    "sm_100a",
    "B200",
    CUBE,
    1763.0,
    "part 2, introduction: kernel 1 is 0.3 % of it and leaves 1758",
)
H200 = Series(
    "H200",
    "docs/hopper.md: presets of this compiler, measured",
    "sm_90a",
    "H200",
    CUBE,
    780.0,
    "Speed",
)
_KERNEL4 = "the text calls it 0.7 % slower than kernel 3, though its figure is higher"
_KERNEL8 = "with block swizzling, which follows kernel 8 there"


def _dummies(section: str, tflops: float) -> Published:
    return Published(DUMMIES, section, tflops)


def _measured(us: float) -> Published:
    return Published(H200, "Speed", H200.operations / us / 1e6)


PUBLISHED = {
    "v1a": _dummies("closing remarks, v1a", 254.62),
    "v1b": _dummies("closing remarks, v1b", 252.81),
    "v2a": _dummies("closing remarks, v2a", 681.20),
    "v2b": _dummies("closing remarks, v2b", 695.43),
    "v3": _dummies("closing remarks, v3", 939.61),
    "v4": _dummies("closing remarks, v4", 1208.83),
    "v5": _dummies("closing remarks, v5", 1302.29),
    "v6": _dummies("closing remarks, v6", 1475.93),
    "kernel1": Published(
        BLACKWELL, "part 2, Kernel 2", 155.0 / 28, "kernel 2 is 28 times as fast, at 155.0"
    ),
    "kernel2": Published(BLACKWELL, "part 2, Kernel 2", 155.0),
    "kernel3": Published(BLACKWELL, "part 2, Kernel 3, Performance", 288.3),
    "kernel4": Published(BLACKWELL, "part 2, Kernel 4, Performance", 293.6, remark=_KERNEL4),
    "kernel5": Published(BLACKWELL, "part 3, Kernel 5", 360.2),
    "kernel6": Published(BLACKWELL, "part 3, Kernel 6", 1429.0),
    "kernel7": Published(
        BLACKWELL, "part 3, Kernel 7", 1429.0 + 64, "64 more than kernel 6, at 1429"
    ),
    "kernel8": Published(BLACKWELL, "part 4, introduction", 1772.0, remark=_KERNEL8),
    "h1": _measured(900.0),
    "h2": _measured(871.9),
    "h3": _measured(264.7),
    "h4": _measured(226.9),
    "h5": _measured(198.2),
    "h6": _measured(177.1),
    "h7": _measured(176.9),
    "h8": _measured(181.9),
}
"""By preset."""
