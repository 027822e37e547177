"""Models as programs of torch.export with their kernels, loaded where there is no compiler."""

import copy
import gc
import re
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.torch_version import TorchVersion

import tilewright
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.dialects.errors import CompileError
from tilewright.runtime.errors import DeviceError

WITHOUT_COMPILER = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        gone = ("torch_mlir", "llvmlite", "tilewright.compiler", "tilewright.passes",
                "tilewright.dialects")
        if name.startswith(gone):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import torch, tilewright
for folder in sys.argv[1:]:
    model = tilewright.torch.load(folder)
    torch.save([model(each) for each in torch.load(f"{folder}.in")], f"{folder}.out")
"""

LOADED_BY_TORCH = """
import pathlib, sys, torch, tilewright
tilewright.torch.register_operators()
folder = pathlib.Path(sys.argv[1])
made = torch.export.load(folder / "program.pt2").module()(*torch.load(folder / "inputs"))
torch.save(made, folder / "made")
"""


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(64)
        self.gate, self.up = (nn.Linear(64, 96, bias=False) for _ in range(2))
        self.down = nn.Linear(96, 64)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A folder of an exported layer, the layer, and an input."""
    torch.manual_seed(3)
    layer = Layer().bfloat16()
    x = torch.randn(2, 9, 64).bfloat16()
    folder = tmp_path_factory.mktemp("exported") / "layer"
    tilewright.torch.export(layer, (torch.zeros_like(x),), folder, target="sm_90a")
    return folder, layer, x


@pytest.fixture(scope="module")
def of_any_rows(tmp_path_factory):
    """The same of a layer whose batch and tokens only a call says."""
    torch.manual_seed(4)
    layer = nn.Sequential(nn.Linear(64, 40), nn.ReLU()).bfloat16().requires_grad_(False)
    folder = tmp_path_factory.mktemp("exported") / "any"
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")}
    x = torch.zeros(2, 9, 64).bfloat16()
    tilewright.torch.export(layer, (x,), folder, dynamic_shapes=(sizes,), target="sm_90a")
    return folder, layer, [torch.randn(*each, 64).bfloat16() for each in ((3, 5), (1, 1), (2, 70))]


def without_compiler(*folders):
    """What a process does that loads the folders one after the other, and calls their models."""
    command = [sys.executable, "-P", "-c", WITHOUT_COMPILER, *map(str, folders)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        (torch.relu, (torch.ones(2),), "model must be a torch.nn.Module, got builtin_function_or"),
        (torch.nn.ReLU(), torch.ones(2), "inputs must be a tuple of what the model is called with"),
        (torch.nn.ReLU(), None, "inputs must be a tuple of what the model is called with, got No"),
    ],
)
def test_what_is_no_module_or_no_tuple_is_refused(model, inputs, message, tmp_path):
    with pytest.raises(CompileError, match=message):
        tilewright.torch.export(model, inputs, tmp_path / "program")


def test_another_process_runs_the_kernels_without_the_compiler(exported, of_any_rows):
    folder, layer, x = exported
    torch.save([x], f"{folder}.in")
    torch.save(of_any_rows[2], f"{of_any_rows[0]}.in")
    done = without_compiler(folder, of_any_rows[0])
    assert done.returncode == 0, done.stderr
    assert_close_to_float64(torch.load(f"{folder}.out")[0], layer, x)
    for made, x in zip(torch.load(f"{of_any_rows[0]}.out"), of_any_rows[2], strict=True):
        assert_rows(made, of_any_rows[1], x)


def test_a_program_with_sizes_of_a_call_has_kernels_for_any_number_of_rows(of_any_rows):
    folder, layer, inputs = of_any_rows
    model = tilewright.torch.load(folder)
    assert [each.op for each in model.graph.nodes if "addmm" in str(each.target)] == []
    for x in inputs:
        assert_rows(model(x), layer, x)


class Sums(nn.Module):
    """Of any number of inputs."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 40).bfloat16()

    def forward(self, x, *others):
        return sum((self.layer(each) for each in others), self.layer(x))


ROWS = {0: torch.export.Dim("rows")}


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "sizes",
    [(ROWS, (ROWS, ROWS)), {"x": ROWS, "others": (ROWS, ROWS)}, None],
    ids=["tuple", "names", "none"],
)
def test_sizes_of_any_number_of_inputs_are_given_as_torch_takes_them(sizes, tmp_path, rows):
    """One tensor for all examples: torch.export's own program would read its last one alone."""
    torch.manual_seed(6)
    model, x = Sums().requires_grad_(False), torch.randn(9, 64).bfloat16()
    if sizes and torch.__version__ < TorchVersion("2.10"):
        pytest.skip("torch 2.9 ends in a NameError in its own run_decompositions")
    tilewright.torch.export(model, (x, x, x), tmp_path / "sums", dynamic_shapes=sizes)
    assert rows and all(row.taken for row in rows)
    loaded = tilewright.torch.load(tmp_path / "sums")
    for given in [x] if sizes is None else [x, torch.randn(5, 64).bfloat16()]:
        wanted = copy.deepcopy(model).double()(
            *(each.double() for each in (given, -given, given / 2))
        )
        torch.testing.assert_close(
            loaded(given, -given, given / 2).double(), wanted, rtol=2e-2, atol=4e-2
        )


def test_sizes_of_one_input_alone(tmp_path):
    torch.manual_seed(6)
    model, x = Sums().requires_grad_(False), torch.randn(9, 64).bfloat16()
    tilewright.torch.export(model, (x,), tmp_path / "one", dynamic_shapes=(ROWS,))
    assert_rows(tilewright.torch.load(tmp_path / "one")(x[:4]), model, x[:4])


def assert_rows(made, layer, x):
    wanted = copy.deepcopy(layer).double()(x.double())
    torch.testing.assert_close(made.double(), wanted, rtol=2e-2, atol=2e-2)


def assert_close_to_float64(made, layer, x):
    wide = Layer().double()
    wide.load_state_dict(layer.state_dict())
    torch.testing.assert_close(made.double(), wide(x.double()), rtol=2e-2, atol=2e-2)


def test_both_products_are_kernels_with_what_follows(exported):
    folder, layer, x = exported
    program = torch.export.load(folder / "program.pt2")
    targets = [str(node.target) for node in program.graph.nodes]
    assert targets.count("tilewright.run_kernel_of_several.default") == 2
    assert not [each for each in targets if each.startswith(("aten.mm", "aten.addmm"))]
    assert len(list((folder / "kernels").iterdir())) == 2
    assert_close_to_float64(tilewright.torch.load(folder)(x), layer, x)


def test_equal_layers_share_a_kernel_and_programs_that_do_so_end_in_any_order(tmp_path):
    torch.manual_seed(5)
    model = nn.Sequential(*(nn.Linear(32, 32) for _ in range(3))).bfloat16().requires_grad_(False)
    x = torch.randn(7, 32).bfloat16()
    tilewright.torch.export(model, (x,), tmp_path / "model", target="sm_90a")
    assert len(list((tmp_path / "model" / "kernels").iterdir())) == 1
    first, second = (tilewright.torch.load(tmp_path / "model") for _ in range(2))
    for each in (first, second):
        torch.testing.assert_close(each(x), model(x), rtol=2e-2, atol=2e-2)
    del first, each
    gc.collect()
    third = tilewright.torch.load(tmp_path / "model")
    del second
    gc.collect()
    torch.testing.assert_close(third(x), model(x), rtol=2e-2, atol=2e-2)


class Calls(nn.Module):
    """A model that calls a product of ours, or a loaded kernel."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.w = nn.Buffer(torch.randn(48, 64).bfloat16())

    def forward(self, x):
        return F.relu(self.function(x, self.w))


def test_kernels_that_a_model_calls_go_with_the_program(exported, tmp_path):
    """As in a program that was loaded, and is exported once more."""
    folder, layer, x = exported
    tilewright.torch.export(tilewright.torch.load(folder), (x,), tmp_path / "again")
    bundle = as_bundle(tilewright.compile(tilewright.MatmulSpec(9, 48, 64)))
    model, y = Calls(tilewright.load(bundle)), torch.randn(9, 64).bfloat16()
    tilewright.torch.export(model, (y,), tmp_path / "calls", target="sm_90a")
    torch.save([x], tmp_path / "again.in")
    torch.save([y], tmp_path / "calls.in")
    done = without_compiler(tmp_path / "again", tmp_path / "calls")
    assert done.returncode == 0, done.stderr
    assert_close_to_float64(torch.load(tmp_path / "again.out")[0], layer, x)
    assert torch.load(tmp_path / "calls.out")[0].equal(model(y))


def test_copies_of_a_loaded_program_have_its_kernels(exported):
    folder, layer, x = exported
    model = tilewright.torch.load(folder)
    found = copy.deepcopy(model)
    del model
    gc.collect()
    assert_close_to_float64(found(x), layer, x)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        found(x.clone().requires_grad_()).sum().backward()


def test_a_product_that_needs_the_compiler_is_refused(tmp_path):
    model = Calls(lambda a, b: tilewright.matmul(a, b, target="sm_90a"))
    got = r"got tilewright\.product\.default: a schedule, a chip .*; leave out its options, or "
    with pytest.raises(CompileError, match=f"export: products must become kernels, .*{got}"):
        tilewright.torch.export(model, (torch.ones(9, 64).bfloat16(),), tmp_path / "calls")
    assert list(tmp_path.iterdir()) == []


def test_what_torch_cannot_take_apart_is_refused_with_its_reason(tmp_path):
    class Graded(nn.Linear):
        def forward(self, x):
            with torch.enable_grad():
                return super().forward(x)

    with pytest.raises(CompileError, match=r"torch\.export must take the model, got \w+Error"):
        tilewright.torch.export(Graded(8, 8), (torch.ones(2, 8),), tmp_path / "graded")


def test_a_kernel_that_is_missing_is_named(exported, tmp_path):
    folder, *_ = exported
    (tmp_path / "kernels").mkdir()
    (tmp_path / "program.pt2").write_bytes((folder / "program.pt2").read_bytes())
    with pytest.raises(DeviceError, match=r"kernels must hold every kernel .* none for \w*matmul_"):
        tilewright.torch.load(tmp_path)


@pytest.mark.slow
def test_another_process_runs_a_program_without_kernels_and_names_a_missing_one(exported, tmp_path):
    """Nothing has loaded the operators of kernels there before the program."""
    plain, x = nn.Linear(16, 8), torch.randn(3, 16)
    tilewright.torch.export(plain, (x,), tmp_path / "plain")
    assert list((tmp_path / "plain" / "kernels").iterdir()) == []
    torch.save([x], tmp_path / "plain.in")
    (tmp_path / "missing").mkdir()
    (tmp_path / "missing" / "program.pt2").write_bytes((exported[0] / "program.pt2").read_bytes())
    done = without_compiler(tmp_path / "plain", tmp_path / "missing")
    assert torch.load(tmp_path / "plain.out")[0].equal(plain(x).detach())
    missing = r"must hold every kernel of the program, got none for \w*matmul_"
    assert re.search(missing, done.stderr)


def test_a_loaded_program_is_compiled_by_torch_and_has_no_gradients(exported):
    folder, layer, x = exported
    model = tilewright.torch.load(folder)
    assert not any(each.requires_grad for each in model.parameters())
    assert_close_to_float64(torch.compile(model, backend="aot_eager")(x), layer, x)


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda _: b""])
def test_a_damaged_program_is_refused(damage, exported, tmp_path):
    (tmp_path / "program.pt2").write_bytes(damage((exported[0] / "program.pt2").read_bytes()))
    with pytest.raises(
        DeviceError, match=r"program: .*program\.pt2 must be what torch\.export\.save"
    ):
        tilewright.torch.load(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused_and_one_that_fails_is_not_there(tmp_path):
    (tmp_path / "file").touch()
    layer, x = nn.Linear(16, 8), torch.randn(3, 16)
    with pytest.raises(CompileError, match=r"export: .*model must be a place for a folder, got "):
        tilewright.torch.export(layer, (x,), tmp_path / "file" / "model")
    with pytest.raises(CompileError, match=r"torch\.export must take the model"):
        tilewright.torch.export(layer, (x[:, :3],), tmp_path / "model")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_folder_of_another_kind_is_refused(tmp_path):
    with pytest.raises(DeviceError, match=r"must be a folder that tilewright\.torch\.export wrote"):
        tilewright.torch.load(tmp_path)


def test_nothing_is_overwritten(exported):
    folder, layer, x = exported
    with pytest.raises(CompileError, match=r"export: .*layer must not be there yet, got one"):
        tilewright.torch.export(layer, (x,), folder)


def test_what_torch_cannot_export_is_refused_with_its_reason(tmp_path):
    class Branches(Layer):
        def forward(self, x):
            return x if x.sum() > 0 else super().forward(x)

    with pytest.raises(CompileError, match=r"export: torch\.export must take the model, got "):
        tilewright.torch.export(Branches(), (torch.ones(2, 64),), tmp_path / "branches")


def test_a_model_whose_products_are_no_kernels_is_a_program_of_torch(tmp_path, rows):
    layer, x = Layer(), torch.randn(2, 3, 64)
    tilewright.torch.export(layer, (x,), tmp_path / "f32")
    assert not any(row.taken for row in rows) and len(rows) == 3
    loaded = tilewright.torch.load(tmp_path / "f32")
    torch.testing.assert_close(loaded(x), layer(x))


def test_linear_layers_are_replaced_by_either_name():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    only = tilewright.torch.replace(model, lambda name, module: name == "2")
    assert only is model and type(model[0]) is nn.Linear
    assert type(model[2]) is tilewright.nn.Linear
    assert type(tilewright.nn.replace(model)[0]) is tilewright.nn.Linear


class Products(nn.Module):
    """Operators of ours that a model calls itself."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(2, 48, 64).bfloat16())

    def forward(self, x, ends):
        return tilewright.matmul(x, self.w[0]) + tilewright.grouped_mm(x, self.w.mT, offs=ends)


def test_another_process_loads_what_torch_itself_has_saved(tmp_path):
    torch.manual_seed(4)
    model, inputs = Products(), (torch.randn(9, 64).bfloat16(), torch.tensor([4, 9]).int())
    program = torch.export.export(model, inputs)
    used = {str(node.target) for node in program.graph.nodes if "tilewright" in str(node.target)}
    assert used >= {"tilewright.grouped.default", "tilewright.matmul.default"}
    torch.export.save(program, tmp_path / "program.pt2")
    torch.save(inputs, tmp_path / "inputs")
    command = [sys.executable, "-c", LOADED_BY_TORCH, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert torch.load(tmp_path / "made").equal(model(*inputs))
