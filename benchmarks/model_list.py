"""Models for benchmarks/models.py: those of transformers by their configurations, and our GPT-2.

Two layers each with random weights unless --layers says another number, since layers repeat: two
show what a kernel behind another one does. Sizes are those of the configurations that their authors
published, without the vocabulary, which two layers would be small beside.

    llama       Llama 3 8B: hidden 4096, MLP 14336, 32 heads of 128, 8 of keys and values
    llama-fp8   the same with weights and activations of e4m3, one scale a tensor
    qwen3-moe   Qwen3 30B-A3B: hidden 2048, 128 experts of 768, 8 a token, 32 heads, 4 of keys
    vit         ViT-L/16 on 224 pixels: hidden 1024, MLP 4096, 16 heads, 197 tokens
    bert        BERT large: hidden 1024, MLP 4096, 16 heads
    gpt2        GPT-2 small, of examples/gpt2.py, with its vocabulary; also a training step

Nothing is downloaded. `transformers` is asked for when a model of it is built. Its attention is
torch's `scaled_dot_product_attention` as eager models call it: without a mask, as no token is
padded. Within torch.compile, and while a CUDA graph is captured, transformers makes a mask of ones
in its place, with which torch has slower kernels, or for BERT and ViT none but products in f32.
"""

from __future__ import annotations

import copy
import importlib
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import gpt2

PAST = 1024
"""Tokens in the cache before the one that a decoding step computes."""
KIND = {
    "llama": "Llama",
    "llama-fp8": "Llama",
    "qwen3-moe": "Qwen3Moe",
    "vit": "ViT",
    "bert": "Bert",
}
LLAMA = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
         "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 256}  # fmt: skip
LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16}
SIZES: dict[str, dict[str, Any]] = {
    "llama": LLAMA,
    "llama-fp8": LLAMA,
    "qwen3-moe": {"hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
                  "num_experts": 128, "num_experts_per_tok": 8, "num_attention_heads": 32,
                  "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 256,
                  "experts_implementation": "grouped_mm"},
    "vit": {**LARGE, "image_size": 224, "patch_size": 16},
    "bert": {**LARGE, "vocab_size": 256},
}  # fmt: skip
TINY = {
    "hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 32, "num_experts": 4,
    "num_experts_per_tok": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
    "image_size": 32,
}  # fmt: skip
TINY_PAST, TINY_TOKENS = 8, 8


ATTENTION = "sdpa_without_mask"


class Missing(Exception):
    """A package that a model needs, and how to get it."""


@dataclass(frozen=True)
class Case:
    """A model and how it is called, in bf16: rows × tokens, or one token behind PAST of a cache."""

    model: str
    rows: int
    tokens: int
    how: str = "prefill"

    @property
    def name(self) -> str:
        return f"{self.model} {self.how} {self.rows}x{self.tokens}"

    @property
    def trains(self) -> bool:
        return self.how == "train"

    def build(self, device: str, tiny: bool, layers: int = 2) -> tuple[nn.Module, torch.Tensor]:
        """The model, of so many layers or, if it is tiny, of one, and its input."""
        torch.manual_seed(7)
        rows, tokens = self.rows, self.tokens
        if tiny:
            rows, tokens, layers = min(rows, 2), min(tokens, TINY_TOKENS), 1
        with torch.device(device):
            if self.model == "gpt2":
                return _gpt2((rows, tokens), tiny, layers, self.trains)
            found = _of_transformers(self.model, tiny, layers)
            config = found.config
            if self.model == "vit":
                pixels = config.image_size
                return Output(found, "pixel_values"), _random(rows, 3, pixels, pixels)
            given = _random(rows, tokens, config.hidden_size)
            if self.how == "decode":
                return Decoding(found, rows, TINY_PAST if tiny else PAST), given
            return Output(found, "inputs_embeds"), given


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(shape).bfloat16()


def _gpt2(
    shape: tuple[int, int], tiny: bool, layers: int, trains: bool
) -> tuple[nn.Module, torch.Tensor]:
    sizes = gpt2.TINY if tiny else replace(gpt2.SMALL, layers=layers)
    model = gpt2.GPT(sizes).bfloat16().requires_grad_(trains)
    return model if trains else model.trunk, torch.randint(sizes.vocabulary, shape)


def _of_transformers(name: str, tiny: bool, layers: int) -> Any:
    try:
        package = importlib.import_module("transformers")
    except ImportError as error:
        raise Missing(f"needs transformers ({error}); pip install transformers") from error
    attention = importlib.import_module("transformers.integrations.sdpa_attention")
    package.AttentionInterface.register(ATTENTION, attention.sdpa_attention_forward)
    sizes = dict(SIZES[name])
    if tiny:
        sizes |= {key: size for key, size in TINY.items() if key in sizes}
    kind = KIND[name]
    config = getattr(package, f"{kind}Config")(
        num_hidden_layers=layers, attn_implementation=ATTENTION, **sizes
    )
    if name == "qwen3-moe":
        config._experts_implementation = sizes["experts_implementation"]
    options = {"add_pooling_layer": False} if name in ("vit", "bert") else {}
    model = getattr(package, f"{kind}Model")(config, **options)
    model = model.bfloat16().eval().requires_grad_(False)
    for each in model.parameters():  # some kinds of transformers begin with zeros
        if each.dim() > 1:
            each.normal_(std=each.shape[-1] ** -0.5)
    return to_fp8(model) if name.endswith("fp8") else model


class Output(nn.Module):
    """What the last layer of a model gives, for one input by its name."""

    def __init__(self, model: nn.Module, name: str):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        options = {} if self.name == "pixel_values" else {"use_cache": False}
        if type(self.model).__name__ == "BertModel":
            options = {}
        return self.model(**{self.name: x}, **options).last_hidden_state


class Decoding(nn.Module):
    """One token of each row behind `past` tokens that a static cache holds; each call is alike."""

    def __init__(self, model: Any, rows: int, past: int):
        super().__init__()
        self.model, self.past = model, past
        config = model.config
        sizes = (rows, config.num_key_value_heads, 2 * past, config.head_dim)
        for number in range(config.num_hidden_layers):
            for name in ("keys", "values"):
                self.register_buffer(f"{name}{number}", _random(*sizes))
        self.register_buffer("position", torch.full((rows, 1), past))
        self.register_buffer("at", torch.tensor([past]))
        seen = torch.arange(2 * past) <= past
        self.register_buffer("seen", seen.view(1, 1, 1, -1).expand(rows, 1, 1, -1).contiguous())

    def update(self, keys: Any, values: Any, layer: int, *_: Any, **__: Any) -> Any:
        """As transformers calls a cache: keys and values with those of the new token."""
        kept = [getattr(self, f"{name}{layer}") for name in ("keys", "values")]
        for each, new in zip(kept, (keys, values), strict=True):
            each.index_copy_(2, self.at, new)
        return kept[0], kept[1]

    def get_seq_length(self, *_: Any) -> int:
        return self.past

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = {"position_ids": self.position, "attention_mask": self.seen, "use_cache": False}
        return self.model(inputs_embeds=x, past_key_values=self, **given).last_hidden_state


class LinearFp8(nn.Module):
    """A product of e4m3 with one scale a tensor; the activation's is measured at each call."""

    def __init__(self, linear: nn.Linear):
        super().__init__()
        weight = linear.weight.detach().float()
        self.register_buffer("scale", weight.abs().amax() / 448)
        self.register_buffer("weight", (weight / self.scale).to(torch.float8_e4m3fn))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        wide = rows.dtype if rows.dtype == torch.float64 else torch.float32
        scale = rows.abs().amax().to(wide) / 448
        narrow = (rows.to(wide) / scale).to(torch.float8_e4m3fn)
        if wide == torch.float64:
            made = narrow.double() @ self.weight.t() * (scale * self.scale)
        else:
            made = torch._scaled_mm(
                narrow, self.weight.t(), scale, self.scale, out_dtype=x.dtype, use_fast_accum=True
            )
        return made.view(*x.shape[:-1], -1)


def to_fp8(model: nn.Module) -> nn.Module:
    """The model with every linear layer in e4m3."""
    for name, module in list(model.named_modules()):
        if type(module) is nn.Linear:
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, LinearFp8(module))
    return model


def in_float64(model: nn.Module) -> nn.Module:
    """The model with the same values in float64; experts one by one, which torch groups in bf16."""
    wide = copy.deepcopy(model).double()
    for module in wide.modules():
        config = getattr(module, "config", None)
        if hasattr(config, "_experts_implementation"):
            config._experts_implementation = "eager"  # type: ignore[union-attr]
    return wide


CASES = [
    Case("llama", 1, 2048),
    *(Case("llama", rows, 1, "decode") for rows in (1, 4, 16, 64)),
    Case("llama-fp8", 1, 2048),
    *(Case("llama-fp8", rows, 1, "decode") for rows in (1, 16, 64)),
    Case("qwen3-moe", 1, 2048),
    *(Case("qwen3-moe", rows, 1, "decode") for rows in (1, 16, 64)),
    Case("vit", 1, 197),
    Case("vit", 32, 197),
    Case("bert", 1, 384),
    Case("bert", 16, 384),
    Case("gpt2", 8, 1024),
    Case("gpt2", 8, 1024, "train"),
]
QUICK = ["llama prefill 1x2048", "llama decode 16x1", "bert prefill 16x384"]
