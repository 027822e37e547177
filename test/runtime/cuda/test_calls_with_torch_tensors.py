"""A kernel called with torch tensors: what is checked anew, which stream is taken, what is kept."""

import math
from types import SimpleNamespace

import pytest

from tilewright.runtime import Kernel, LaunchError, element_types
from tilewright.runtime.gpu import CudaDevice
from tilewright.runtime.gpu.driver import Driver
from tilewright.runtime.gpu.program import FORMS_KEPT


@pytest.fixture
def kernel(b200, bundle, monkeypatch):
    """The kernel as a function, on the second B200."""
    device = CudaDevice(driver=Driver(b200))
    monkeypatch.setattr("tilewright.runtime.launch.kernel.open_device", lambda name: device)
    return Kernel(bundle)


@pytest.fixture
def called(kernel):
    """called(tensors, stream): a call of the kernel."""
    return lambda tensors, stream=5: kernel(*tensors[:2], out=tensors[2], stream=stream)


@pytest.fixture(autouse=True)
def fakes_are_taken(monkeypatch):
    """Fake tensors count as torch's."""

    def is_torch(value):
        return isinstance(value, FakeTensor) or element_types.is_torch(value)

    for module in ("gpu.operands", "operands.arguments", "operands.copies", "operands.results"):
        monkeypatch.setattr(f"tilewright.runtime.{module}.is_torch", is_torch)


def fake_tensors(manifest, offset=0):
    return [FakeTensor(tensor, 1, offset) for tensor in manifest["tensors"]]


def test_torch_tensors_that_are_as_before_are_not_checked_again(
    b200, manifest, called, monkeypatch
):
    first, second = fake_tensors(manifest), fake_tensors(manifest, 2**20)
    for tensors in (first, second):
        called(tensors)
    monkeypatch.setattr("tilewright.runtime.gpu.program.pointer_of", None)
    for tensors in (second, second, first):
        called(tensors)
    tables = [arguments[2] for arguments in b200.arguments("cuLaunchKernelEx")]
    assert [tables.index(table) for table in tables] == [0, 1, 1, 1, 0]
    assert len(b200.encoded) == 2


def test_tensors_of_a_few_forms_that_take_turns_are_not_checked_again(
    b200, manifest, called, monkeypatch
):
    """As a weight does with gradients and without, in training and in evaluation."""
    forms = [type(f"Form{number}", (FakeTensor,), {}) for number in range(FORMS_KEPT)]
    calls = []
    for form in forms:
        _, *others = fake_tensors(manifest)
        calls.append([form(manifest["tensors"][0], 1), *others])
        called(calls[-1])
    monkeypatch.setattr("tilewright.runtime.gpu.program.pointer_of", None)
    for tensors in (*calls, *reversed(calls)):
        called(tensors)
    assert len(b200.arguments("cuLaunchKernelEx")) == 3 * FORMS_KEPT
    assert len(b200.encoded) == 1


def test_a_form_beyond_those_that_are_kept_is_checked_and_runs(b200, manifest, called):
    for number in (*range(FORMS_KEPT + 1), 0):
        _, *others = fake_tensors(manifest)
        form = type(f"Form{number}", (FakeTensor,), {})
        called([form(manifest["tensors"][0], 1), *others])
    assert len(b200.arguments("cuLaunchKernelEx")) == FORMS_KEPT + 2


def test_inputs_that_lie_as_before_are_not_looked_at_for_copies(
    b200, bundle, manifest, kernel, monkeypatch
):
    """But for their addresses, of which each is new."""
    asked = []
    monkeypatch.setattr(
        "tilewright.runtime.operands.arguments.Arguments.fitted",
        lambda self, inputs, stream: asked.append(stream) or inputs,
    )
    copying = Kernel(bundle, copies=True)
    for offset, stream in ((0, 5), (2**20, 6), (2**21, 7)):
        *inputs, out = fake_tensors(manifest, offset)
        copying(*inputs, out=out, stream=stream)
    assert asked == [5]
    *inputs, out = fake_tensors(manifest)
    inputs[0].address += 2
    with pytest.raises(LaunchError, match="tensor 'a': address must be a multiple of 16 bytes"):
        copying(*inputs, out=out, stream=8)
    assert asked == [5, 8]
    inputs[0].address, inputs[0].shape = 4096, (4, 8)
    with pytest.raises(LaunchError, match="shape must be"):
        copying(*inputs, out=out, stream=9)
    assert asked == [5, 8, 9]


@pytest.mark.parametrize("offset", [0, 64])
def test_a_tensor_whose_storage_was_freed_since_is_refused(b200, manifest, called, offset):
    """What begins behind its storage, as in a flat parameter, then lies at its offset."""
    called(fake_tensors(manifest))
    freed = fake_tensors(manifest)
    freed[1].offset, freed[1].address, freed[1].storage = offset, 2 * offset, 0
    for _ in range(2):
        with pytest.raises(LaunchError, match="tensor 'b': must have memory for its 64 elements"):
            called(freed)
    called(fake_tensors(manifest))
    assert len(b200.arguments("cuLaunchKernelEx")) == 2


@pytest.mark.parametrize("changed", range(3))
def test_a_kernel_runs_again_only_on_tensors_like_those_of_its_last_call(
    b200, manifest, kernel, changed
):
    a, b, c = tensors = fake_tensors(manifest)
    assert not kernel.relaunched((a, b), c, 5)
    assert "cuLaunchKernelEx" not in b200.names()
    kernel(a, b, out=c, stream=5)
    assert kernel.relaunched((a, b), c, 5)
    assert len(b200.arguments("cuLaunchKernelEx")) == 2
    tensors[changed].shape = (2, 3)
    assert not kernel.relaunched((a, b), c, 5)
    assert len(b200.arguments("cuLaunchKernelEx")) == 2


def test_a_new_stream_is_taken_for_tensors_that_are_as_before(b200, manifest, called):
    for stream in (5, 6, 5):
        called(fake_tensors(manifest), stream)
    launched = [arguments[0].hStream for arguments in b200.arguments("cuLaunchKernelEx")]
    assert launched == [5, 6, 5]
    assert len(b200.encoded) == 1


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("index", 0, "must be on cuda:1, got cuda:0; move it there"),
        ("dtype", "torch.float16", "must be torch.bfloat16 or numpy bfloat16 or uint16 or int16"),
        ("shape", (4, 8), r"shape must be \[4, 16\], got \[4, 8\]"),
        ("_strides", (16, 1), r"strides \(in elements\) must be \[1, 4\], got \[16, 1\]"),
        ("address", 4097, "address must be a multiple of 2 bytes, got 0x1001; pass a copy"),
    ],
)
def test_a_torch_tensor_that_has_changed_is_checked_again(manifest, called, field, value, message):
    tensors = fake_tensors(manifest)
    called(tensors)
    setattr(tensors[1], field, value)
    with pytest.raises(LaunchError, match=f"^tensor 'b': {message}"):
        called(tensors)


def test_torchs_current_stream_is_asked_at_each_launch(b200, manifest, called, monkeypatch):
    streams = iter((71, 71, 72))
    current = SimpleNamespace(cuda_stream=70)
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.cuda.current_stream", lambda index: current)
    raw = "torch._C._cuda_getCurrentRawStream"
    monkeypatch.setattr(raw, lambda index: next(streams), raising=False)
    tensors = fake_tensors(manifest)
    called(tensors, None)
    current.cuda_stream = 71
    called(tensors, None)
    called(tensors, None)
    current.cuda_stream = 72
    called(tensors, None)
    launched = [arguments[0].hStream for arguments in b200.arguments("cuLaunchKernelEx")]
    assert launched == [70, 71, 71, 72]


def test_a_stream_of_torchs_that_a_graph_captures_is_launched_on_without_dependence(
    b200, manifest, called, kernel, monkeypatch
):
    """Torch says that it does where Python launches, the driver where C does."""
    b200.contexts.append(0xC1)
    capturing = [False]
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.cuda.current_stream", lambda index: SimpleNamespace(cuda_stream=71))
    raw, asked = "torch._C._cuda_getCurrentRawStream", "torch._C._cuda_isCurrentStreamCapturing"
    monkeypatch.setattr(raw, lambda index: 71, raising=False)
    monkeypatch.setattr(asked, lambda: capturing[0], raising=False)
    tensors = fake_tensors(manifest)
    kernel.manifest["schedule"]["programmatic_dependent_launch"] = True
    called(tensors, None)
    questions = len(b200.arguments("cuStreamIsCapturing"))
    called(tensors, None)
    b200.captures[71], b200.in_front = 5, [(("another's", 0xC1), [])]
    capturing[0] = True
    called(tensors, None)
    configs = [arguments[0] for arguments in b200.arguments("cuLaunchKernelEx")]
    assert [config.numAttrs for config in configs] == [1, 1, 0]
    asked_again = b200.arguments("cuStreamIsCapturing")[questions:]
    assert asked_again == [(71,)] * (3 if b200.has_address else 1)


class FakeTensor:
    """What is looked at in a torch tensor."""

    layout = "torch.strided"

    def __init__(self, declared, index, offset=0):
        self.shape, self._strides = tuple(declared["shape"]), tuple(declared["strides"])
        self.dtype = {"bf16": "torch.bfloat16", "f32": "torch.float32"}[declared["dtype"]]
        self.index, self.address = index, offset + 4096 * ord(declared["name"])
        self.offset, self.storage = 0, 2**20

    @property
    def device(self):
        return f"cuda:{self.index}"

    def stride(self):
        return self._strides

    def get_device(self):
        return self.index

    def is_neg(self):
        return False

    def _is_zerotensor(self):
        return False

    def numel(self):
        return math.prod(self.shape)

    def element_size(self):
        return 2 if "16" in str(self.dtype) else 4

    def storage_offset(self):
        return self.offset

    def untyped_storage(self):
        return SimpleNamespace(nbytes=lambda: self.storage)

    def data_ptr(self):
        return self.address
