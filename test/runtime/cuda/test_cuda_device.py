"""The cuda device on a driver that records: what is kept, what is checked, what is refused."""

import ctypes
from types import SimpleNamespace

import pytest

from tilewright.runtime import Bundle, DeviceError, Kernel, LaunchError
from tilewright.runtime.bundles.bundle import seal
from tilewright.runtime.gpu import CudaDevice
from tilewright.runtime.gpu.architecture import runs_on, translates
from tilewright.runtime.gpu.driver import Driver, DriverError


@pytest.fixture
def refusal(b200, bundle, arrays):
    """refusal(name=array …): the message that a launch on these arrays ends with."""

    def refuse(**changed):
        with pytest.raises(LaunchError) as refused:
            CudaDevice(driver=Driver(b200)).launch(bundle, {**arrays, **changed})
        assert "cuLaunchKernelEx" not in b200.names()
        return str(refused.value)

    return refuse


def test_a_second_launch_makes_nothing_anew(b200, bundle, arrays):
    program = CudaDevice(driver=Driver(b200)).open(bundle, 0)
    program.enqueue(list(arrays.values()), stream=5)
    b200.calls.clear()
    program.enqueue(list(arrays.values()), stream=5)
    assert b200.names() == ["cuLaunchKernelEx"]
    assert len(b200.encoded) == 1


def test_another_address_gets_its_own_tensor_map(b200, bundle, arrays, gpu_array):
    program = CudaDevice(driver=Driver(b200)).open(bundle, 0)
    other = gpu_array((6, 16), (16, 1))
    for a in (arrays["a"], other, arrays["a"]):
        program.enqueue([a, arrays["b"], arrays["c"]], stream=5)
    assert [each["address"] for each in b200.encoded] == [arrays["a"].address, other.address]
    tables = [arguments[2] for arguments in b200.arguments("cuLaunchKernelEx")]
    assert tables[0] == tables[2] != tables[1]


def test_sets_of_addresses_share_the_tensor_maps_of_those_that_they_share(
    b200, bundle, arrays, gpu_array
):
    """As torch hands out the memory of activations: many sets of a few addresses."""
    program = CudaDevice(driver=Driver(b200)).open(bundle, 0)
    other_a, other_b = gpu_array((6, 16), (16, 1)), gpu_array((4, 16), (1, 4))
    sets = [[a, b, arrays["c"]] for a in (arrays["a"], other_a) for b in (arrays["b"], other_b)]
    for values in (*sets, *sets):
        program.enqueue(values, stream=5)
    assert [each["address"] for each in b200.encoded] == [arrays["a"].address, other_a.address]
    tables = [arguments[2] for arguments in b200.arguments("cuLaunchKernelEx")]
    assert len(set(tables)) == 4 and tables[:4] == tables[4:]


def test_operands_at_one_address_have_parameters_of_their_own(b200, bundle, arrays, gpu_array):
    """As both sides of x · xᵀ: one is a tensor map here, and the other a pointer."""
    program = CudaDevice(driver=Driver(b200)).open(bundle, 0)
    alike = gpu_array((4, 16), (1, 4), address=arrays["a"].address)
    program.enqueue([arrays["a"], alike, arrays["c"]], stream=5)
    (kept,) = program._arguments.values()
    assert [ctypes.sizeof(each) for each in kept.values] == [128, 8, 8]


def test_each_stream_has_its_own_configuration(b200, bundle, arrays):
    program = CudaDevice(driver=Driver(b200)).open(bundle, 0)
    for stream in (5, 6, 5):
        program.enqueue(list(arrays.values()), stream)
    configs = [arguments[0] for arguments in b200.arguments("cuLaunchKernelEx")]
    assert [config.hStream for config in configs] == [5, 6, 5]
    assert configs[0] is configs[2]


def test_the_producer_of_an_array_is_told_the_stream(b200, bundle, arrays):
    program = CudaDevice(driver=Driver(b200)).open(bundle, 0)
    program.enqueue(list(arrays.values()), stream=5)
    program.enqueue(list(arrays.values()), stream=0)
    assert arrays["a"].streams == [5, 1], "DLPack calls the legacy default stream 1"


def test_a_kernel_runs_on_the_gpu_of_its_tensors(b200, bundle, gpu_array, monkeypatch):
    device = CudaDevice(driver=Driver(b200))
    monkeypatch.setattr("tilewright.runtime.launch.kernel.open_device", lambda name: device)
    kernel = Kernel(bundle)
    for index in (1, 0, 1):
        a, b = gpu_array((6, 16), (16, 1), index=index), gpu_array((4, 16), (1, 4), index=index)
        c = gpu_array((6, 4), (4, 1), "f32", index=index)
        assert kernel(a, b, out=c, stream=5) is c
    functions = [arguments[1] for arguments in b200.arguments("cuLaunchKernelEx")]
    assert [context - 0xC0 for _, context in functions] == [1, 0, 1]
    assert len(b200.arguments("cuModuleLoadData")) == 2


def test_a_bundle_is_loaded_once_into_each_gpu(b200, bundle):
    device = CudaDevice(driver=Driver(b200))
    for index in (0, 1, 0):
        device.open(bundle, index)
    assert len(b200.arguments("cuModuleLoadData")) == 2


@pytest.mark.parametrize("current", [[], [0xC1]])
def test_a_launch_in_a_thread_without_the_context_enters_it(b200, bundle, arrays, current):
    program = CudaDevice(driver=Driver(b200)).open(bundle, 0)
    program.enqueue(list(arrays.values()), stream=0)
    b200.calls.clear()
    b200.contexts[:] = current
    program.enqueue(list(arrays.values()), stream=0)
    assert b200.names() == [
        "cuLaunchKernelEx",
        "cuCtxPushCurrent",
        "cuLaunchKernelEx",
        "cuCtxPopCurrent",
    ]
    assert b200.arguments("cuCtxPushCurrent") == [(0xC0,)]
    assert b200.contexts == current


def test_a_stream_that_is_gone_is_told_after_one_more_try(b200, bundle, arrays):
    b200.failing["cuLaunchKernelEx"] = 400
    with pytest.raises(DriverError, match=r"launch: must succeed, got CUDA_ERROR_INVALID_HANDLE"):
        CudaDevice(driver=Driver(b200)).launch(bundle, arrays)
    assert len(b200.arguments("cuLaunchKernelEx")) == 2
    assert b200.contexts == [0xC0]


def test_no_gpu_is_said(no_gpu):
    with pytest.raises(DeviceError) as refused:
        CudaDevice(driver=Driver(no_gpu))
    assert str(refused.value) == "cuda: index must be below the 0 GPUs here, got 0"


def test_a_gpu_that_is_not_there_is_said(b200):
    with pytest.raises(DeviceError, match=r"^cuda: index must be below the 2 GPUs here, got 2$"):
        CudaDevice(2, Driver(b200))


def test_a_bundle_for_another_gpu_is_refused_with_both_names(h200, bundle):
    with pytest.raises(DeviceError) as refused:
        CudaDevice(driver=Driver(h200)).open(bundle)
    assert str(refused.value) == (
        "kernel copy on cuda:0 (NVIDIA H200): GPU must have compute capability 10.0 for a bundle of"
        " sm_100a, got 9.0; compile it for sm_90a"
    )
    assert "cuModuleLoadData" not in h200.names()


@pytest.mark.parametrize(
    ("target", "capability", "runs"),
    [
        ("sm_100a", (10, 0), True),
        ("sm_100a", (10, 3), False),
        ("sm_100f", (10, 3), True),
        ("sm_103f", (10, 0), False),
        ("sm_90a", (9, 0), True),
        ("sm_90", (10, 0), False),
        ("sm_80", (8, 9), True),
        ("gfx942", (9, 4), False),
    ],
)
def test_a_cubin_runs_on_its_own_architecture(target, capability, runs):
    assert runs_on(target, capability) is runs


@pytest.mark.parametrize(
    ("target", "capability", "does"),
    [
        ("sm_80", (9, 0), True),
        ("sm_80", (8, 0), True),
        ("sm_86", (8, 0), False),
        ("sm_90a", (10, 0), False),
        ("sm_100f", (10, 3), False),
        ("gfx942", (9, 4), False),
    ],
)
def test_the_driver_translates_ptx_of_no_single_chip_for_later_ones(target, capability, does):
    assert translates(target, capability) is does


def test_too_much_shared_memory_is_refused(b200, manifest, ptx, cubin):
    sealed = seal(manifest, ptx, cubin) | {"dynamic_shared_bytes": 232_440}
    with pytest.raises(LaunchError) as refused:
        CudaDevice(driver=Driver(b200)).open(Bundle(sealed, ptx, cubin))
    assert str(refused.value) == (
        "kernel copy on cuda:0 (NVIDIA B200): shared memory of a CTA must be at most 232448 bytes,"
        " got 232456; compile with fewer stages"
    )


def test_a_failed_launch_names_the_code_the_kernel_and_the_launch(b200, bundle, arrays):
    b200.failing["cuLaunchKernelEx"] = 1
    with pytest.raises(DriverError) as failed:
        CudaDevice(driver=Driver(b200)).launch(bundle, arrays)
    assert str(failed.value) == (
        "kernel copy on cuda:0 (NVIDIA B200): launch: must succeed, got"
        " CUDA_ERROR_INVALID_VALUE (1), what went wrong; it was grid 1x1x1, cluster 1x1x1,"
        " block 128x1x1, 4096 shared bytes"
    )
    assert failed.value.code == 1
    assert b200.contexts == [0xC0]


def test_a_failure_while_the_kernel_runs_is_told_at_the_end(b200, bundle, arrays):
    b200.failing["cuStreamSynchronize"] = 700
    with pytest.raises(DriverError) as failed:
        CudaDevice(driver=Driver(b200)).launch(bundle, arrays)
    assert str(failed.value) == (
        "kernel copy on cuda:0 (NVIDIA B200): run: must succeed, got"
        " CUDA_ERROR_ILLEGAL_ADDRESS (700), what went wrong"
    )


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("cuModuleLoadData", "cuModuleLoadData"),
        ("cuFuncSetAttribute", "cuFuncSetAttribute MAX_DYNAMIC_SHARED_SIZE_BYTES"),
        ("cuTensorMapEncodeTiled", "tensor map of 'a': cuTensorMapEncodeTiled"),
    ],
)
def test_every_driver_failure_says_what_failed(call, what, b200, bundle, arrays):
    b200.failing[call] = 1
    with pytest.raises(DriverError) as failed:
        CudaDevice(driver=Driver(b200)).launch(bundle, arrays)
    assert str(failed.value) == (
        f"kernel copy on cuda:0 (NVIDIA B200): {what}: must succeed, got"
        " CUDA_ERROR_INVALID_VALUE (1), what went wrong"
    )


def test_arrays_that_do_not_fit_are_refused_by_name(refusal, gpu_array):
    assert refusal(a=gpu_array((16, 6), (6, 1))) == (
        "tensor 'a': shape must be [6, 16], got [16, 6]"
    )
    assert refusal(b=gpu_array((4, 16), (16, 1))) == (
        "tensor 'b': strides (in elements) must be [1, 4], got [16, 1]"
    )
    assert refusal(c=gpu_array((6, 4), (4, 1), "f64")) == (
        "tensor 'c': must be torch.float32 or numpy float32, got float64"
    )
    assert refusal(c=[1.0]) == "tensor 'c': must be torch.float32 or numpy float32, got list"
    assert refusal(b=gpu_array((4, 16), (1, 4), index=1)) == (
        "tensor 'b': must be on cuda:0, got cuda:1; move it there"
    )


def test_an_address_that_is_not_aligned_is_refused(refusal, gpu_array):
    assert refusal(a=gpu_array((6, 16), (16, 1), address=0x7F0000000008)) == (
        "tensor 'a': address must be a multiple of 16 bytes, got 0x7f0000000008; pass a copy"
    )
    assert refusal(c=gpu_array((6, 4), (4, 1), "f32", address=0x7F0000000010)) == (
        "tensor 'c': address must be a multiple of 32 bytes, got 0x7f0000000010; pass a copy"
    )


def test_tensors_in_the_cpus_memory_are_refused(b200, bundle):
    import numpy as np

    a, b = np.zeros((6, 16), np.uint16), np.zeros((16, 4), np.uint16).T
    with pytest.raises(LaunchError) as refused:
        CudaDevice(driver=Driver(b200)).launch(bundle, {"a": a, "b": b, "c": np.zeros((6, 4))})
    assert str(refused.value) == "tensor 'a': must be on cuda:0, got the CPU; move it there"


def test_a_device_of_one_gpu_refuses_tensors_of_another(b200, bundle, arrays):
    with pytest.raises(DeviceError) as refused:
        CudaDevice(1, Driver(b200)).launch(bundle, arrays)
    assert str(refused.value) == (
        "tensors: must be on cuda:1 for this device, got cuda:0; move them, or open the device"
        " 'cuda'"
    )


def test_the_report_says_where_the_kernel_ran(b200, bundle, arrays):
    report = CudaDevice(driver=Driver(b200)).launch(bundle, arrays)
    assert report.as_dict() == {
        "kernel": "copy",
        "gpu": "cuda:0 (NVIDIA B200)",
        "capability": "10.0",
        "driver_version": "13.2",
    }
    assert b200.arguments("cuStreamSynchronize") == [(0,)]


def test_options_of_the_emulator_are_refused(b200, bundle, arrays):
    with pytest.raises(DeviceError) as refused:
        CudaDevice(driver=Driver(b200)).launch(bundle, arrays, 3, check="full", trace=None)
    assert str(refused.value) == (
        "cuda: must get no options, got check, trace; the emulator has them"
    )
    assert "cuLaunchKernelEx" not in b200.names()


def test_a_missing_driver_is_one_sentence():
    def missing(_):
        raise RuntimeError("libcuda.so.1 not found\nTried: everything")

    with pytest.raises(DeviceError) as refused:
        Driver(SimpleNamespace(cuInit=missing))
    assert str(refused.value) == (
        "cuda: an NVIDIA driver must be installed, got libcuda.so.1 not found; install it, or use"
        " the emulator"
    )


def test_the_recorded_driver_has_the_names_and_numbers_of_cuda_python(recorded_enums, b200):
    api = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
    for enumeration, members in recorded_enums.items():
        found = getattr(api, enumeration)
        assert {name: int(getattr(found, name)) for name in members} == members
    called = [name for name in vars(type(b200)) if name.startswith("_cu")]
    assert all(hasattr(api, name[1:]) for name in called)
    config, attribute = api.CUlaunchConfig(), api.CUlaunchAttribute()
    attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    attribute.value.clusterDim.x = 2
    config.attrs, config.numAttrs, config.hStream = [attribute], 1, 5
    assert (config.attrs[0].value.clusterDim.x, int(config.hStream)) == (2, 5)
