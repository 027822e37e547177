"""A decoder as GPT-2 has it, trained with backend="tilewright".

    python examples/gpt2.py                      tiny, on the emulator, without a GPU
    python examples/gpt2.py --device cuda        the sizes of GPT-2 small, 8 × 1024 tokens

It takes a few steps of SGD on one batch, in eager torch and compiled, and prints the losses of
both and what was done with each product: forward ones with their activations, whose inputs are kept
for backward, and those of the gradients. It fails where the losses are not alike.
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
    """Widths of the model; the MLP is four times as wide as `hidden`."""

    hidden: int
    heads: int
    layers: int
    tokens: int
    vocabulary: int


TINY = Sizes(hidden=64, heads=2, layers=1, tokens=8, vocabulary=128)
APART = 0.05  # losses of both, relatively: steps of SGD enlarge what roundings to bf16 differ by
SMALL = Sizes(hidden=768, heads=12, layers=12, tokens=1024, vocabulary=50304)


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)), each with biases."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        width = sizes.hidden
        self.heads = sizes.heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, tokens, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(rows, tokens, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(found.transpose(1, 2).reshape(rows, tokens, width))
        return x + self.proj(F.gelu(self.fc(self.norms[1](x)), approximate="tanh"))


class Trunk(nn.Module):
    """Tokens to what the last norm gives."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.words = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.places = nn.Embedding(sizes.tokens, sizes.hidden)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.hidden)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class GPT(nn.Module):
    """The loss of each next token; the head has the words' own matrix."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.trunk = Trunk(sizes)
        for each in self.parameters():
            if each.dim() == 2:
                nn.init.normal_(each, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = F.linear(self.trunk(tokens), self.trunk.words.weight)
        wanted = tokens.roll(-1, 1).flatten()
        return F.cross_entropy(logits.flatten(0, 1).float(), wanted)


def model() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """A layer in its real sizes, without memory: `tilewright model check` asks for this."""
    with torch.device("meta"):
        gpt = GPT(Sizes(**{**vars(SMALL), "layers": 1})).bfloat16()
        return gpt, (torch.empty(8, SMALL.tokens, dtype=torch.int64),)


def losses(loss: nn.Module, parameters: list[nn.Parameter], tokens: torch.Tensor) -> list[float]:
    """Of a few steps on the same tokens."""
    optimizer, found = torch.optim.SGD(parameters, lr=0.5), []
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        made = loss(tokens)
        made.backward()
        optimizer.step()
        found.append(made.item())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="emulator", choices=("emulator", "cuda"))
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    sizes, rows = (SMALL, 8) if on_gpu else (TINY, 2)
    torch.manual_seed(0)
    with torch.device("cuda" if on_gpu else "cpu"):
        eager = GPT(sizes).bfloat16()
        tokens = torch.randint(sizes.vocabulary, (rows, sizes.tokens))
    trained = copy.deepcopy(eager)
    compiled = torch.compile(
        trained, backend="tilewright", options={"device": options.device}, dynamic=False
    )
    start = time.perf_counter()
    ours = losses(compiled, list(trained.parameters()), tokens)
    print(f"three steps, compilation included: {time.perf_counter() - start:.1f} s")
    theirs = losses(eager, list(eager.parameters()), tokens)
    for name, found in (("eager", theirs), ("compiled", ours)):
        print(f"{name:9} losses {', '.join(f'{each:.4f}' for each in found)}")
    print(tilewright.torch.report())
    check(ours, theirs)


def check(ours: list[float], theirs: list[float]) -> None:
    """Ends the program where a loss is further from eager's than roundings to bf16 explain."""
    for our, their in zip(ours, theirs, strict=True):
        if not abs(our - their) <= APART * their:  # NaN, too
            sys.exit(f"FAIL  a loss is {our:.4f}, more than {APART:.0%} from eager's {their:.4f}")
    print(f"PASS  each loss is within {APART:.0%} of eager's")


if __name__ == "__main__":
    main()
