"""What tensor cores and DRAM take for a grouped product at least, beside half of torch's time."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

FLOPS_A_CYCLE = {2: 4096, 1: 8192}
"""Dense ones of a multiprocessor, by the bytes of an element: 989.4 and 1978.9 TFLOP/s of 132
multiprocessors at 1830 MHz (NVIDIA H100 Tensor Core GPU Architecture, table 2)."""
DRAM_RATE = {"H200": 4.8e12, "H100": 3.35e12}
"""Bytes a second, by the board (data sheets of NVIDIA H200 and of H100 SXM)."""
AIM = 2.0  # of torch's speed
LOAD_US = 3e5  # of work, during which the clock is read


class Product(NamedTuple):
    """Sizes, bytes of an element of A and B, and whether K is cut into groups instead of rows."""

    m: int
    n: int
    k: int
    groups: int
    element: int
    of_k: bool

    @property
    def operations(self) -> int:
        """Those of all groups, however large each is."""
        return 2 * self.m * self.n * self.k

    @property
    def moved(self) -> int:
        """Bytes of A, of all matrices, and of C in 16 bits, each read or written once."""
        if self.of_k:
            read = self.k * (self.m + self.n)
            return self.element * read + 2 * self.groups * self.m * self.n
        read = self.m * self.k + self.groups * self.n * self.k
        return self.element * read + 2 * self.m * self.n

    def tensor_us(self, multiprocessors: int, mhz: float) -> float:
        """Microseconds in which tensor cores do it at a clock."""
        return self.operations / (FLOPS_A_CYCLE[self.element] * multiprocessors * mhz)

    def dram_us(self, board: str) -> float:
        """Microseconds in which the DRAM of a board moves it, NaN of one that is not known."""
        rates = (rate for name, rate in DRAM_RATE.items() if name in board)
        return self.moved / next(rates, math.nan) * 1e6


def limits(product: Product, graph: Any, calls: int, times: dict[str, float]) -> str:
    """What is said of a product, while torch's kernel runs again in a graph of so many calls."""
    import torch

    from tilewright.runtime.gpu.timing import clocks_under

    launches = int(LOAD_US / (calls * times["torch"])) + 1
    clocks = clocks_under(lambda _: graph.replay(), launches, 1)
    chip = torch.cuda.get_device_properties(0)
    return told(product, chip.name, chip.multi_processor_count, clocks, times)


def told(
    product: Product,
    board: str,
    multiprocessors: int,
    clocks: dict[str, float],
    times: dict[str, float],
) -> str:
    """The figures, and whether the chip allows the aim: at its highest clock, and at torch's."""
    highest, load = clocks["highest_mhz"], clocks["sm_mhz"]
    tensor = [product.tensor_us(multiprocessors, mhz) for mhz in (highest, load)]
    dram, took, ours = product.dram_us(board), times["torch"], times["chosen"]
    least = [max(each, dram) for each in tensor]
    verdicts = ["beyond" if took / AIM < each else "within" for each in least]
    return (
        f"{product.operations / 1e9:.1f} GFLOP take {tensor[0]:.0f} us at {highest:.0f} MHz, "
        f"{tensor[1]:.0f} at {load:.0f} MHz, torch's; {product.moved / 1e9:.2f} GB take {dram:.0f} "
        f"us. {AIM:g} x torch's {took:.0f} us is {took / AIM:.0f}: {verdicts[0]} the chip, "
        f"{verdicts[1]} it at torch's clock, where {took / least[1]:.2f} is the most; ours "
        f"{took / ours:.2f}"
    )
