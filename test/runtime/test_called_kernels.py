"""A loaded bundle as a function: outputs that are made, arrays of any library, refusals."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tilewright.runtime import Bundle, BundleError, Kernel, LaunchError, emulator, load
from tilewright.runtime.bundles.bundle import seal
from tilewright.runtime.launch.emulator_device import EmulatorProgram


@pytest.fixture
def kernel(manifest, ptx, cubin, monkeypatch):
    """A kernel whose emulated launch writes a[0, 1] · b[1, 0] to c[1, 1] and b's bits nowhere."""

    def launch(ptx, entry, *, params, **keywords):
        a = params[0].array if hasattr(params[0], "array") else params[0].memory
        values = [
            bits[index : index + 1].view(ml_dtypes.bfloat16).astype(np.float32)
            for bits, index in ((a, 1), (params[1], 1))
        ]
        params[2][:] = np.float32(0).view(np.uint32)
        params[2][5:6] = (values[0] * values[1]).view(np.uint32)

    monkeypatch.setattr(emulator, "launch", launch)
    return Kernel(Bundle(seal(manifest, ptx, cubin), ptx, cubin))


def inputs():
    a = torch.arange(96, dtype=torch.float32).reshape(6, 16).to(torch.bfloat16) - 7
    b = torch.arange(64, dtype=torch.float32).reshape(16, 4).to(torch.bfloat16).T + 2
    return a, b


class Foreign:
    """An array of a library that only speaks DLPack."""

    def __init__(self, tensor, versions=True):
        self.tensor, self.versions = tensor, versions

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **keywords):
        if not self.versions and keywords:
            raise TypeError("unexpected keyword")
        return self.tensor.__dlpack__(**keywords)


def test_a_bundle_in_memory_is_loaded_as_it_is(manifest, ptx, cubin):
    bundle = Bundle(seal(manifest, ptx, cubin), ptx, cubin)
    assert load(bundle).bundle is bundle


@pytest.mark.parametrize(
    "relauncher", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_a_copy_of_a_kernel_is_one_of_the_same_bundle(relauncher, kernel):
    found = relauncher(kernel)
    a, b = inputs()
    assert found is not kernel and found.key == kernel.key
    assert torch.equal(found(a, b), kernel(a, b))


def test_what_is_no_bundle_is_refused_with_what_makes_one():
    with pytest.raises(BundleError) as raised:
        load(3)  # type: ignore[arg-type]
    assert str(raised.value) == (
        "load: must be a path or a Bundle, got int; as_bundle makes one of what compile returned"
    )


def with_arguments(manifest, names, *sources):
    """The manifest of a kernel whose a and b are these (index, transposed) arguments."""
    keys = ("index", "transposed")
    a, b, c = manifest["tensors"]
    inputs = [
        {**tensor, "argument": dict(zip(keys, source, strict=True))}
        for tensor, source in zip((a, b), sources, strict=True)
    ]
    return {**manifest, "arguments": names, "tensors": [*inputs, c]}


def called(kernel, manifest, copies=False):
    ptx, cubin = kernel.bundle.ptx, kernel.bundle.cubin
    return Kernel(Bundle(seal(manifest, ptx, cubin), ptx, cubin), copies=copies)


def test_arguments_come_in_the_order_and_shape_of_the_source(kernel, manifest):
    named = with_arguments(manifest, ["w", "idle", "x"], (2, False), (0, True))
    a, b = inputs()
    c = called(kernel, named)(b.T, None, a)
    assert c[1, 1] == a[0, 1] * b[1, 0] == -18
    a, b = (tensor.float().numpy().astype(ml_dtypes.bfloat16) for tensor in (a, b))
    assert called(kernel, named)(b.T, None, a)[1, 1] == -18


class Asked:
    """A fast path that knows no launch, and says what it was asked for."""

    def __init__(self):
        self.made, self.launched = [], []

    def launch_new(self, inputs, _):
        self.made.append(inputs)

    def launch_into(self, *_):
        return False

    def launch(self, tensors, _):
        self.launched.append(tensors)
        return False


def test_a_launch_like_the_last_one_takes_arguments_only_where_they_are_the_inputs(
    kernel, manifest, monkeypatch
):
    asked = Asked()
    monkeypatch.setattr(EmulatorProgram, "relauncher", asked)
    a, b = inputs()
    for _ in range(2):
        kernel(a, b)
    assert [tuple(map(id, each)) for each in asked.made] == [(id(a), id(b))]
    exchanged = called(kernel, with_arguments(manifest, ["w", "x"], (1, False), (0, False)))
    for _ in range(2):
        exchanged(b, a)
    assert len(asked.made) == 1
    assert [(id(one), id(other)) for one, other, _ in asked.launched[-1:]] == [(id(a), id(b))]


def test_refusals_are_in_the_words_of_the_source(kernel, manifest):
    swapped = called(kernel, with_arguments(manifest, ["w", "x"], (1, False), (0, True)))
    a, b = inputs()
    with pytest.raises(LaunchError, match=r"argument 'w': shape must be \[16, 4\], got \[4, 16\]"):
        swapped(b, a)
    with pytest.raises(LaunchError, match=r"argument 'w': shape must be \[16, 4\], got \[\]"):
        swapped(None, a)
    with pytest.raises(LaunchError, match=r"tensor 'a': shape must .* got \[3, 16\]; it is 'x'$"):
        swapped(b.T, a[:3])
    with pytest.raises(LaunchError, match=r"'b': strides .* got \[16, 1\]; it is 'w' transposed$"):
        swapped(b.contiguous().T, a)
    with pytest.raises(LaunchError, match="must be called with 2 inputs, w, x, got 1"):
        swapped(a)


def odd_layouts(tensor):
    """The same values with other strides and starts."""
    rows, columns = tensor.shape
    padded = torch.full((rows, columns + 3), torch.nan, dtype=tensor.dtype)
    moved = torch.full((rows * columns + 1,), torch.nan, dtype=tensor.dtype)
    spread = torch.full((rows, 2 * columns), torch.nan, dtype=tensor.dtype)
    views = (padded[:, 3:], moved[1:].view(rows, columns), spread[:, ::2])
    for view in (*views, tensor.T.contiguous().T, tensor.contiguous()):
        yield view.copy_(tensor)


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_other_layouts_are_copied_where_that_is_asked_for(kernel, manifest, library):
    copying = called(kernel, with_arguments(manifest, ["x", "w"], (0, False), (1, True)), True)
    a, b = inputs()
    for x, w in zip(odd_layouts(a), odd_layouts(b.T), strict=True):
        if library == "numpy":
            x, w = (each.view(torch.int16).numpy().view(ml_dtypes.bfloat16) for each in (x, w))
        assert copying(x, w)[1, 1] == -18
    if library == "torch":
        expanded = copying(a[:1].expand(6, 16), b.T)
        assert expanded[1, 1] == -18
        with pytest.raises(LaunchError, match=r"'a': must be torch\.bfloat16"):
            copying(a.float(), b.T)
        with pytest.raises(LaunchError, match=r"'a': must be dense, got torch\.sparse_coo"):
            copying(a.to_sparse(), b.T)
        with pytest.raises(LaunchError, match=r"'a': must be dense, got torch\.sparse_coo"):
            kernel(a.to_sparse(), b)
        with pytest.raises(LaunchError, match="stream: must be None where inputs are copied"):
            copying(a.T.contiguous().T, b.T, stream=5)


def test_torch_inputs_give_a_torch_output(kernel):
    a, b = inputs()
    c = kernel(a, b)
    assert (c.shape, c.stride(), c.dtype) == ((6, 4), (4, 1), torch.float32)
    assert c[1, 1] == a[0, 1] * b[1, 0] == -18


def test_numpy_inputs_give_a_numpy_output(kernel):
    a, b = (tensor.float().numpy().astype(ml_dtypes.bfloat16) for tensor in inputs())
    c = kernel(a, b)
    assert isinstance(c, np.ndarray)
    assert (c.dtype, c[1, 1]) == (np.float32, -18)


def test_an_output_of_bf16_is_typed_as_the_input_is(manifest, kernel):
    manifest["tensors"][2]["dtype"] = "bf16"
    from tilewright.runtime.operands.results import new_output

    for like in (np.zeros(1, ml_dtypes.bfloat16), np.zeros(1, np.uint16)):
        assert new_output(manifest["tensors"][2], like).dtype == like.dtype
    made = new_output(manifest["tensors"][2], np.zeros(1, np.float16))
    assert made.dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("versions", [True, False])
def test_arrays_of_any_library_are_taken_through_dlpack(kernel, versions):
    a, b = (Foreign(tensor, versions) for tensor in inputs())
    given = torch.full((6, 4), torch.nan)
    out = Foreign(given, versions)
    assert kernel(a, b, out=out) is out
    assert given[1, 1] == -18
    assert kernel(a, b)[1, 1] == -18


def test_dlpack_arrays_are_checked_as_the_others_are(kernel):
    a, b = inputs()
    for wrong, message in (
        (Foreign(a.float()), "tensor 'a': must be torch.bfloat16 or numpy bfloat16 or"),
        (Foreign(a[:5]), r"tensor 'a': shape must be \[6, 16\], got \[5, 16\]"),
        (Foreign(a.T.contiguous().T), r"tensor 'a': strides \(in elements\) must be"),
        (Foreign(a.clone().requires_grad_()), "tensor 'a': must export DLPack, got"),
    ):
        with pytest.raises(LaunchError, match=f"^{message}"):
            kernel(wrong, b)


def test_a_read_only_dlpack_output_is_refused(kernel):
    locked = np.zeros((6, 4), np.float32)
    locked.setflags(write=False)
    with pytest.raises(LaunchError, match=r"^tensor 'c': must be writable"):
        kernel(*inputs(), out=Foreign(locked))


def test_out_is_written_and_returned(kernel):
    c = torch.full((6, 4), torch.nan)
    assert kernel(*inputs(), out=c) is c
    assert c[1, 1] == -18


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_are_refused(kernel, layout):
    a, b = inputs()
    nested = torch.nested.nested_tensor([a[:2], a[2:]], layout=layout)
    with pytest.raises(LaunchError) as refused:
        kernel(nested, b)
    assert str(refused.value) == (
        "argument 'a': must be dense, got a nested tensor; pass what to_padded_tensor() gives"
    )


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_torch_would_differentiate_is_refused(kernel, place):
    given = [*inputs(), torch.full((6, 4), torch.nan)]
    given[place].requires_grad_()
    for values, out in ((given[:2], given[2]), (given[:2], None)):
        if place == 2 and out is None:
            continue
        with pytest.raises(LaunchError) as refused:
            kernel(*values, out=out)
        assert str(refused.value) == (
            "kernel copy: has no gradient, got tensors that require one;"
            " call it under torch.no_grad(), or pass what detach() gives"
        )
        with torch.no_grad():
            assert kernel(*values, out=out)[1, 1] == -18


def test_a_wrong_number_of_inputs_is_refused(kernel):
    a, b = inputs()
    with pytest.raises(LaunchError) as refused:
        kernel(a, b, torch.zeros(6, 4))
    assert str(refused.value) == (
        "kernel copy: must be called with 2 inputs, a, b, got 3; outputs are passed as out="
    )


def test_an_array_in_the_other_byte_order_is_refused(kernel):
    other = np.dtype(np.float32).newbyteorder("S")
    with pytest.raises(LaunchError) as refused:
        kernel(*inputs(), out=np.zeros((6, 4), other))
    wanted = "must be torch.float32 or numpy float32"
    assert str(refused.value) == f"tensor 'c': {wanted}, got numpy {other}"


@pytest.mark.parametrize("place", ["a", "out"])
def test_a_mask_is_refused_and_not_passed_over(kernel, place):
    a, b = (tensor.float().numpy().astype(ml_dtypes.bfloat16) for tensor in inputs())
    given = {"a": a, "out": np.zeros((6, 4), np.float32)}
    given[place] = np.ma.array(given[place], mask=True)
    with pytest.raises(LaunchError, match=r"tensor '[ac]': must have no mask, got a masked array"):
        kernel(given["a"], b, out=given["out"])


def test_an_output_that_does_not_fit_is_refused(kernel):
    with pytest.raises(LaunchError, match=r"^tensor 'c': shape must be \[6, 4\], got \[4, 6\]"):
        kernel(*inputs(), out=torch.zeros(4, 6))


def test_torch_compile_keeps_a_call_in_one_graph(kernel):
    compiled = torch.compile(lambda a, b: kernel(a, b) * 2, backend="aot_eager", fullgraph=True)
    assert compiled(*inputs())[1, 1] == -36


def test_torch_compile_keeps_a_call_that_writes_out(kernel):
    def call(a, b, out):
        return kernel(a, b, out=out) + 1

    out = torch.full((6, 4), torch.nan)
    result = torch.compile(call, backend="aot_eager", fullgraph=True)(*inputs(), out)
    assert (out[1, 1], result[1, 1]) == (-18, -17)


@pytest.mark.parametrize("out", [torch.zeros(2, 6, 4), torch.zeros(6, 4, dtype=torch.int32)])
def test_an_output_in_a_graph_that_no_launch_takes_is_refused(kernel, out):
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Observed exception"):
        torch.compile(kernel, backend="eager", fullgraph=True)(*inputs(), out=out)


@pytest.mark.parametrize("kind", [torch.Tensor, type("Mine", (torch.Tensor,), {})])
def test_a_backward_that_needs_what_an_output_held_is_an_error(kernel, kind):
    held = torch.ones(6, 4).as_subclass(kind)
    product = torch.ones(6, 4, requires_grad=True) * held
    kernel(*inputs(), out=held)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_fake_tensors_get_the_operators_fake(kernel):
    a, b = inputs()
    kernel(a, b)
    with FakeTensorMode() as mode:
        c = kernel(mode.from_tensor(a), mode.from_tensor(b))
    assert (tuple(c.shape), c.stride(), c.dtype) == ((6, 4), (4, 1), torch.float32)


@pytest.mark.parametrize(("change", "rule"), [
    (lambda a, b: (a[:5], b), r"tensor 'a': shape must be \[6, 16\], got \[5, 16\]"),
    (lambda a, b: (a[None], b), r"tensor 'a': shape must be \[6, 16\], got \[1, 6, 16\]"),
    (lambda a, b: (a, b.float()), "tensor 'b': must be torch.bfloat16 .*, got torch.float32"),
    (lambda a, b: (a, b.to("meta")), "must have its inputs on one device, got cpu, meta; move"),
])  # fmt: skip
def test_tensors_of_a_graph_that_no_launch_takes_are_refused(kernel, change, rule):
    with FakeTensorMode() as mode, pytest.raises(LaunchError, match=rule):
        kernel(*change(*map(mode.from_tensor, inputs())))


def test_a_backend_that_runs_operators_while_it_compiles_gets_the_kernel(kernel, monkeypatch):
    a, b = inputs()
    monkeypatch.setattr("torch.compiler._is_compiling_flag", True)
    assert kernel(a, b)[1, 1] == -18


def test_a_kernel_says_what_it_takes(kernel):
    assert repr(kernel) == (
        "<kernel copy of sm_100a: a bf16 [6, 16], b bf16 [4, 16] → c f32 [6, 4]>"
    )
