"""A decoder layer as Llama has it, compiled with backend="tilewright".

    python examples/llama_block.py                     tiny, on the emulator, without a GPU
    python examples/llama_block.py --device cuda       the sizes of Llama 3 8B, 2048 tokens
    tilewright model check examples/llama_block.py     its products for Blackwell, one by one

It prints how far the compiled layer is from eager torch, both against float64, and what was done
with each of its products, and fails where it is further. On the emulator that takes a minute, most
of it compilation.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

import tilewright


@dataclass(frozen=True)
class Sizes:
    """Widths of a layer; keys and values have fewer heads than queries."""

    hidden: int
    mlp: int
    heads: int
    key_heads: int
    head: int


TINY = Sizes(hidden=64, mlp=96, heads=2, key_heads=1, head=32)
FURTHER = 1.5  # times the distance of eager torch from float64, by other roundings to bf16
LLAMA_3_8B = Sizes(hidden=4096, mlp=14336, heads=32, key_heads=8, head=128)


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.sizes = sizes
        queries, keys = sizes.heads * sizes.head, sizes.key_heads * sizes.head
        self.norms = nn.ModuleList(nn.RMSNorm(sizes.hidden) for _ in range(2))
        self.q = nn.Linear(sizes.hidden, queries, bias=False)
        self.k, self.v = (nn.Linear(sizes.hidden, keys, bias=False) for _ in range(2))
        self.o = nn.Linear(queries, sizes.hidden, bias=False)
        self.gate, self.up = (nn.Linear(sizes.hidden, sizes.mlp, bias=False) for _ in range(2))
        self.down = nn.Linear(sizes.mlp, sizes.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.o(self._attended(self.norms[0](x)))
        h = self.norms[1](x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))

    def _attended(self, h: torch.Tensor) -> torch.Tensor:
        heads = (*h.shape[:2], -1, self.sizes.head)
        q, k, v = (each(h).view(heads).transpose(1, 2) for each in (self.q, self.k, self.v))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return found.transpose(1, 2).flatten(2)


def model() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The layer in its real sizes, without memory: `tilewright model check` asks for this."""
    with torch.device("meta"):
        block = Block(LLAMA_3_8B).bfloat16().requires_grad_(False)
        return block, (torch.empty(1, 2048, LLAMA_3_8B.hidden, dtype=torch.bfloat16),)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="emulator", choices=("emulator", "cuda"))
    parser.add_argument("--tokens", type=int, default=0, help="(default 8, or 2048 on a GPU)")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    sizes, tokens = (LLAMA_3_8B, 2048) if on_gpu else (TINY, 8)
    torch.manual_seed(0)
    with torch.device("cuda" if on_gpu else "cpu"), torch.no_grad():
        block = Block(sizes).bfloat16()
        x = torch.randn(1, options.tokens or tokens, sizes.hidden).bfloat16()
        compiled = torch.compile(
            block, backend="tilewright", options={"device": options.device}, dynamic=False
        )
        start = time.perf_counter()
        made = compiled(x)
        print(f"first call: {time.perf_counter() - start:.1f} s")
        exact = copy.deepcopy(block).double()(x.double())
        theirs, ours = (
            (found.double() - exact).square().mean().sqrt().item() for found in (block(x), made)
        )
    print(f"eager     {theirs:.2e} from float64\ncompiled  {ours:.2e} from float64")
    print(tilewright.torch.report())
    if not ours <= FURTHER * theirs:  # NaN, too
        sys.exit(
            f"FAIL  the compiled layer is more than {FURTHER} times as far from float64 as eager"
        )
    print(f"PASS  the compiled layer is at most {FURTHER} times as far from float64 as eager")


if __name__ == "__main__":
    main()
