"""Models of our own with the shapes of well-known ones, for benchmarks/models.py.

Two layers each and random weights: layers repeat, so that two show what a kernel behind another one
does. Sizes are those of the configurations that their authors published.

    llama       Llama 3 8B: hidden 4096, MLP 14336, 32 heads of 128, 8 of keys and values
    llama-fp8   the same with weights and activations of e4m3, one scale a tensor
    qwen3-moe   Qwen3 30B-A3B: hidden 2048, 128 experts of 768, 8 a token, 32 heads, 4 of keys
    vit         ViT-L/16 on 224 pixels: hidden 1024, MLP 4096, 16 heads, 197 tokens
    bert        BERT large: hidden 1024, MLP 4096, 16 heads
    gpt2        GPT-2 small: hidden 768, MLP 3072, 12 heads; with a training step
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Shape:
    """Sizes of a model; `experts` and `chosen` are 0 where the MLP is one."""

    hidden: int
    mlp: int
    heads: int
    key_heads: int
    head: int
    layers: int = 2
    experts: int = 0
    chosen: int = 0
    vocabulary: int = 0

    def tiny(self) -> Shape:
        """The same relations in sizes that the emulator runs."""
        heads = min(self.heads, 2)
        keys = 1 if self.key_heads < self.heads else heads
        experts, chosen = (4, 2) if self.experts else (0, 0)
        return Shape(64, 96, heads, keys, 32, 1, experts, chosen, min(self.vocabulary, 128))


SHAPES = {
    "llama": Shape(4096, 14336, 32, 8, 128),
    "llama-fp8": Shape(4096, 14336, 32, 8, 128),
    "qwen3-moe": Shape(2048, 768, 32, 4, 128, experts=128, chosen=8),
    "vit": Shape(1024, 4096, 16, 16, 64),
    "bert": Shape(1024, 4096, 16, 16, 64),
    "gpt2": Shape(768, 3072, 12, 12, 64, vocabulary=50304),
}


class Attention(nn.Module):
    """Heads of queries that share heads of keys and values; `causal` as decoders have it."""

    def __init__(self, shape: Shape, bias: bool, causal: bool, linear: type[nn.Module]):
        super().__init__()
        self.shape, self.causal = shape, causal
        width, keys = shape.heads * shape.head, shape.key_heads * shape.head
        self.q, self.k, self.v = (
            linear(shape.hidden, each, bias=bias) for each in (width, keys, keys)
        )
        self.o = linear(width, shape.hidden, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, tokens, _ = x.shape

        def heads(made: torch.Tensor) -> torch.Tensor:
            return made.view(rows, tokens, -1, self.shape.head).transpose(1, 2)

        q, k, v = heads(self.q(x)), heads(self.k(x)), heads(self.v(x))
        shared = self.shape.key_heads < self.shape.heads
        found = F.scaled_dot_product_attention(
            q, k, v, is_causal=self.causal and tokens > 1, enable_gqa=shared
        )
        return self.o(found.transpose(1, 2).reshape(rows, tokens, -1))


class Gated(nn.Module):
    """down(silu(gate(x)) * up(x))"""

    def __init__(self, shape: Shape, linear: type[nn.Module]):
        super().__init__()
        self.gate, self.up = (linear(shape.hidden, shape.mlp, bias=False) for _ in range(2))
        self.down = linear(shape.mlp, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Plain(nn.Module):
    """fc2(gelu(fc1(x)))"""

    def __init__(self, shape: Shape, approximate: str):
        super().__init__()
        self.approximate = approximate
        self.fc1, self.fc2 = (
            nn.Linear(shape.hidden, shape.mlp),
            nn.Linear(shape.mlp, shape.hidden),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(F.gelu(self.fc1(x), approximate=self.approximate))


class Experts(nn.Module):
    """Each token's MLPs by `_grouped_mm` of the tokens sorted by expert."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        e, h, m = shape.experts, shape.hidden, shape.mlp
        self.router = nn.Linear(h, e, bias=False)
        self.gate, self.up = (nn.Parameter(torch.randn(e, m, h) / h**0.5) for _ in range(2))
        self.down = nn.Parameter(torch.randn(e, h, m) / m**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, x.shape[-1])
        weights, experts = torch.topk(self.router(flat).float().softmax(-1), self.shape.chosen)
        order = experts.flatten().argsort()
        counts = F.one_hot(experts.flatten(), self.shape.experts).sum(0)
        ends = counts.cumsum(0).to(torch.int32)
        taken = flat[order // self.shape.chosen]

        def product(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return torch._grouped_mm(rows, weight.transpose(1, 2), ends)

        made = F.silu(product(taken, self.gate)) * product(taken, self.up)
        made = product(made, self.down) * weights.flatten()[order, None].to(x.dtype)
        return torch.zeros_like(flat).index_add(0, order // self.shape.chosen, made).view(x.shape)


class LinearFp8(nn.Module):
    """A product of e4m3 with one scale a tensor; the activation's is measured at each call."""

    def __init__(self, inner: int, outer: int, bias: bool = False):
        super().__init__()
        del bias
        weight = torch.randn(outer, inner) / inner**0.5
        self.register_buffer("scale", weight.abs().amax() / 448)
        self.register_buffer("weight", (weight / self.scale).to(torch.float8_e4m3fn))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        scale = rows.abs().amax().float() / 448
        narrow = (rows.float() / scale).to(torch.float8_e4m3fn)
        made = torch._scaled_mm(
            narrow, self.weight.t(), scale, self.scale, out_dtype=x.dtype, use_fast_accum=True
        )
        return made.view(*x.shape[:-1], -1)


class Layer(nn.Module):
    """Attention and MLP, each behind a norm, with residuals; BERT's norms stand behind them."""

    def __init__(self, attention: nn.Module, mlp: nn.Module, norms: list[nn.Module], post: bool):
        super().__init__()
        self.attention, self.mlp, self.post = attention, mlp, post
        self.first, self.second = norms

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.post:
            x = self.first(x + self.attention(x))
            return self.second(x + self.mlp(x))
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Trained(nn.Module):
    """A decoder with its embedding and the loss of the next token."""

    def __init__(self, shape: Shape, layers: nn.Module):
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers, self.norm = layers, nn.LayerNorm(shape.hidden)
        self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.norm(self.layers(self.embedding(tokens))))
        wanted = tokens.roll(-1, 1).flatten()
        return F.cross_entropy(logits.flatten(0, 1).float(), wanted)


def layers_of(name: str, shape: Shape) -> nn.Module:
    """The layers of a model by its name."""
    decoder = name.startswith(("llama", "qwen"))
    linear = LinearFp8 if name.endswith("fp8") else nn.Linear
    norm: Callable[[], nn.Module] = lambda: (nn.RMSNorm if decoder else nn.LayerNorm)(shape.hidden)  # noqa: E731

    def layer() -> nn.Module:
        attention = Attention(shape, not decoder, decoder or name == "gpt2", linear)
        if shape.experts:
            mlp: nn.Module = Experts(shape)
        else:
            mlp = (
                Gated(shape, linear)
                if decoder
                else Plain(shape, "tanh" if name == "gpt2" else "none")
            )
        return Layer(attention, mlp, [norm(), norm()], name == "bert")

    return nn.Sequential(*(layer() for _ in range(shape.layers)))


@dataclass(frozen=True)
class Case:
    """A model and how it is called: rows × tokens, in bf16; `trains` with forward and backward."""

    model: str
    rows: int
    tokens: int
    trains: bool = False

    @property
    def name(self) -> str:
        what = "train" if self.trains else "decode" if self.tokens == 1 else "run"
        return f"{self.model} {what} {self.rows}x{self.tokens}"

    def tiny(self) -> Case:
        return replace(self, rows=min(self.rows, 2), tokens=min(self.tokens, 8))

    def build(self, device: str, tiny: bool) -> tuple[nn.Module, torch.Tensor]:
        """The model and its input."""
        torch.manual_seed(7)
        shape = SHAPES[self.model].tiny() if tiny else SHAPES[self.model]
        case = self.tiny() if tiny else self
        with torch.device(device):
            model = layers_of(self.model, shape)
            if self.trains:
                model = Trained(shape, model)
                given = torch.randint(shape.vocabulary, (case.rows, case.tokens))
            else:
                given = torch.randn(case.rows, case.tokens, shape.hidden).bfloat16()
        narrow = [each for each in model.parameters() if each.dtype == torch.float32]
        for each in narrow:
            each.data = each.data.bfloat16()
            each.requires_grad_(self.trains)
        return model, given


CASES = [
    Case("llama", 1, 2048),
    Case("llama", 1, 1),
    Case("llama", 16, 1),
    Case("llama", 64, 1),
    Case("llama-fp8", 1, 2048),
    Case("llama-fp8", 64, 1),
    Case("qwen3-moe", 1, 2048),
    Case("qwen3-moe", 64, 1),
    Case("vit", 32, 197),
    Case("bert", 16, 384),
    Case("gpt2", 8, 1024, trains=True),
]
QUICK = [Case("llama", 1, 2048), Case("llama", 16, 1), Case("bert", 16, 384)]
