"""`tilewright model check`: what it lists of a model, verifies, writes and refuses."""

import json

import pytest

from tilewright.tools.main import main

MODEL = """
import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (
            nn.Linear(*sizes, bias=False) for sizes in ((64, 48), (64, 48), (48, 64))
        )

    def forward(self, x):
        wide = x.float()
        for _ in range(2):
            x = x + self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))
        return x, wide @ wide.T


def model():
    with torch.device("meta"):
        return Mlp().bfloat16().requires_grad_(False), torch.empty(200, 64, dtype=torch.bfloat16)


class Loss(Mlp):
    def forward(self, x):
        scores = self.down(torch.nn.functional.silu(self.gate(x)))
        return torch.nn.functional.cross_entropy(scores.float(), torch.zeros_like(x[:, 0]).long())


def loss():
    with torch.device("meta"):
        return Loss().bfloat16(), torch.empty(200, 64, dtype=torch.bfloat16)


def nothing():
    return 3


def asking(size):
    return size


def raising():
    return {}["no such size"]


def leaving():
    raise SystemExit(0)


def left():
    class Leaving(nn.Module):
        def forward(self, x):
            raise SystemExit(0)

    return Leaving(), torch.empty(2, 3, device="meta")


def broken():
    return (lambda x: x @ x), torch.empty(2, 3, device="meta")
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(MODEL)
    return path


def test_products_are_counted_verified_and_bundled(script, tmp_path, capsys):
    folder = tmp_path / "bundles"
    words = ["model", "check", str(script), "--rows", "16", "-o", str(folder), "--json"]
    assert main(words) == 0
    left, swiglu, down = json.loads(capsys.readouterr().out)["products"]
    assert (left["product"], left["sizes"], left["compiled"]) == ("mm", [200, 200, 64], False)
    assert (swiglu["product"], swiglu["sizes"], swiglu["count"]) == ("2 mm", [200, 48, 64], 2)
    assert swiglu["emulator"] == {"right": True, "sizes": "16x48x64", "reason": None}
    assert (down["fused"], down["count"], down["emulator"]["right"]) == (["add"], 2, True)
    written = sorted(path.name for path in folder.iterdir())
    assert written == [swiglu["bundle"], down["bundle"]]


def test_a_kernel_that_computes_something_else_is_named(script, capsys, monkeypatch):
    from tilewright.compiler.inductor import check

    right = check.function_of
    monkeypatch.setattr(
        check, "import_epilogue", lambda spec, frame, _, likes: _negated(spec, frame, right, likes)
    )

    def _negated(spec, frame, _, likes):
        from tilewright.compiler.importers.epilogue_function import import_epilogue

        return import_epilogue(spec, frame, lambda *values: -values[0] + 0 * sum(values), likes)

    assert main(["model", "check", str(script), "--rows", "16"]) == 1
    printed = capsys.readouterr().out
    assert "elements must be as float64 sums make them" in printed and "WRONG at 16x" in printed


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "must return (model, inputs), got int"),
        ("broken", "error: model: must be called with its inputs, and give tensors, got "),
        ("asking", "must return (model, inputs), got TypeError: asking() missing 1 required"),
        ("raising", "must return (model, inputs), got KeyError: 'no such size'"),
        ("missing", "must be a function that can be loaded, got AttributeError"),
        ("leaving", "must return (model, inputs), got SystemExit: 0"),
        ("left", "code that is loaded must not end the program, got sys.exit(0); let it return"),
    ],
)
def test_what_is_no_model_is_refused(script, name, message, capsys):
    assert main(["model", "check", f"{script}:{name}"]) == 1
    assert message in capsys.readouterr().err


def test_an_operator_that_fails_is_one_message(script, capfd):
    """In a process of its own the log of torch goes to stderr as well."""
    script.write_text(
        "import torch\n\n\ndef model():\n    return torch.nn.Linear(8, 8), torch.randn(2, 9)\n"
    )
    assert main(["model", "check", str(script)]) == 1
    said = [line for line in capfd.readouterr().err.splitlines() if "error" in line.lower()]
    assert len(said) == 1 and "got RuntimeError('a and b must have same reduction dim" in said[0]


def test_rows_and_actions_that_mean_nothing_are_wrong_usage(script, capsys):
    assert main(["model", "check", str(script), "--rows", "-1"]) == 2
    assert main(["model"]) == 2
    assert "an ACTION must be named" in capsys.readouterr().err


def test_gradients_go_through_cross_entropy_on_the_meta_device(script, capsys):
    words = ["model", "check", f"{script}:loss", "--backward", "--rows", "0", "--json"]
    assert main(words) == 0
    products = json.loads(capsys.readouterr().out)["products"]
    sizes = sorted(each["sizes"] for each in products)
    forward = [[200, 48, 64], [200, 64, 48]]
    assert sizes == sorted([*forward, [200, 48, 64], [64, 48, 200], [48, 64, 200]])
    (silu,) = (each for each in products if "sigmoid" in each["fused"])
    assert silu["sizes"] == [200, 48, 64]
