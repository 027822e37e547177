"""Every call and argument that a B200's driver gets, for presets of the Blackwell ladder."""

import ctypes

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.presets import PRESETS
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.gpu import CudaDevice
from tilewright.runtime.gpu.driver import Driver

LOADED_AND_LAUNCHED = [
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetAttribute",
    "cuDriverGetVersion",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuCtxPushCurrent",
    "cuThreadExchangeStreamCaptureMode",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuFuncSetAttribute",
    "cuThreadExchangeStreamCaptureMode",
    "cuCtxPopCurrent",
    "cuCtxPushCurrent",
    "cuGetProcAddress",
    "cuCtxPopCurrent",
    "cuLaunchKernelEx",
]
BF16, F32, NO_FILL, SWIZZLE_128B, L2_128B = 9, 7, 0, 3, 2
BYTES, S32 = 0, 3


@pytest.fixture
def launched(b200, gpu_array):
    """launched(spec, pipeline): compiles, launches on the second B200, on stream 0x57."""

    kept = []  # the parameters are read after the launch

    def launch(spec, pipeline):
        compiled = compile_matmul(spec, pipeline=pipeline)
        cubin = compiled.assembled.cubin
        bundle = Bundle(seal(compiled.manifest, compiled.ptx, cubin), compiled.ptx, cubin)
        program = CudaDevice(driver=Driver(b200)).open(bundle, 1)
        kept.append(program)
        arrays = [
            gpu_array(tensor["shape"], tensor["strides"], tensor["dtype"], index=1)
            for tensor in bundle.manifest["tensors"]
        ]
        program.enqueue(arrays, stream=0x57)
        return bundle, arrays, b200

    return launch


def parameters(driver, sizes):
    """The bytes of each kernel parameter of the one launch, given their sizes."""
    ((_, _, address, extra),) = driver.arguments("cuLaunchKernelEx")
    assert extra == 0
    table = (ctypes.c_void_p * len(sizes)).from_address(address)
    return [ctypes.string_at(pointer, size) for pointer, size in zip(table, sizes, strict=True)]


def encoded(array, dims, strides_bytes, box, dtype=BF16):
    return {
        "dtype": dtype,
        "address": array.address,
        "dims": dims,
        "strides_bytes": strides_bytes,
        "box": box,
        "element_strides": [1] * len(dims),
        "interleave": 0,
        "swizzle": SWIZZLE_128B,
        "l2_promotion": L2_128B,
        "oob_fill": NO_FILL,
    }


EARLY = (6, 1)


def config_of(driver):
    ((config, function, _, _),) = driver.arguments("cuLaunchKernelEx")
    assert function == ("function", 0xC1), "the function of the second GPU's context"
    found = dict(vars(config))
    found["attrs"] = [(each.id, _value_of(each)) for each in config.attrs]
    return found


def _value_of(attribute):
    """Whether a launch may be early, or what else an attribute says."""
    said = vars(attribute.value)
    return said["programmaticStreamSerializationAllowed"] if attribute.id == EARLY[0] else said


def extents(grid, block, shared_bytes):
    grids = {f"gridDim{axis}": extent for axis, extent in zip("XYZ", grid, strict=True)}
    blocks = {f"blockDim{axis}": extent for axis, extent in zip("XYZ", block, strict=True)}
    return {**grids, **blocks, "sharedMemBytes": shared_bytes, "hStream": 0x57}


def test_a_plain_kernel(launched):
    bundle, (a, b, c), driver = launched(MatmulSpec(512, 768, 320), PRESETS["v3"])
    assert driver.names() == LOADED_AND_LAUNCHED
    assert driver.arguments("cuModuleLoadData") == [(bundle.cubin,)]
    assert driver.arguments("cuModuleGetFunction") == [("module", b"matmul_bf16_512x768x320")]
    assert driver.arguments("cuFuncSetAttribute") == [(("function", 0xC1), 8, 196_684)]
    assert driver.encoded == [
        encoded(a, [320, 512], [640], [64, 128]),
        encoded(b, [320, 768], [640], [64, 256]),
    ]
    assert config_of(driver) == {
        **extents((4, 3, 1), (128, 1, 1), 196_684),
        "attrs": [EARLY],
        "numAttrs": 1,
    }
    maps_and_pointer = parameters(driver, (128, 128, 8))
    assert maps_and_pointer == [b"\1" * 128, b"\2" * 128, c.address.to_bytes(8, "little")]


def test_a_cluster_of_two_ctas_that_share_each_mma(launched):
    _, (a, b, c), driver = launched(MatmulSpec(512, 768, 320), PRESETS["v5"])
    assert driver.names() == LOADED_AND_LAUNCHED
    assert driver.encoded == [
        encoded(a, [320, 512], [640], [64, 128]),
        encoded(b, [320, 768], [640], [64, 128]),
    ]
    config = config_of(driver)
    (attribute, value), early = config.pop("attrs")
    assert early == EARLY
    assert (attribute, vars(value["clusterDim"])) == (4, {"x": 2, "y": 1, "z": 1})
    assert config == {**extents((4, 3, 1), (192, 1, 1), 196_724), "numAttrs": 2}
    assert parameters(driver, (128, 128, 8))[2] == c.address.to_bytes(8, "little")


def test_a_preferred_cluster_beside_the_one_to_fall_back_on(launched):
    clusters = "clustering{shape=4x1 pair=true fallback=2x1},pipelining{stages=2}"
    passes = f"tiling{{tile=128x64x64}},tma-insertion,swizzle-selection,{clusters}"
    _, _, driver = launched(MatmulSpec(512, 64, 64), passes)
    config = config_of(driver)
    (regular, either), (preferred, larger), early = config["attrs"]
    assert (regular, vars(either["clusterDim"])) == (4, {"x": 2, "y": 1, "z": 1})
    assert (preferred, vars(larger["preferredClusterDim"])) == (11, {"x": 4, "y": 1, "z": 1})
    assert (config["gridDimX"], config["numAttrs"], early) == (4, 3, EARLY)


def test_a_persistent_kernel_with_launch_control(launched):
    spec = MatmulSpec(1000, 520, 136, c_dtype="f32", b_major="n")
    _, (a, b, c), driver = launched(spec, PRESETS["kernel8"])
    assert driver.names() == LOADED_AND_LAUNCHED
    assert driver.encoded == [
        encoded(a, [136, 1000], [272], [64, 128]),
        encoded(b, [520, 136], [1040], [64, 64]),
        encoded(c, [520, 1000], [2080], [32, 128], F32),
    ]
    config = config_of(driver)
    (attribute, value), early = config.pop("attrs")
    assert early == EARLY
    assert (attribute, vars(value["clusterDim"])) == (4, {"x": 2, "y": 1, "z": 1})
    assert config == {**extents((8, 3, 1), (224, 1, 1), 229_572), "numAttrs": 2}
    assert parameters(driver, (128,) * 3) == [bytes([i]) * 128 for i in (1, 2, 3)]


@pytest.mark.parametrize(
    ("types", "operands", "result"),
    [
        (("tf32", "tf32", "f32", "f32"), F32, F32),
        (("e4m3", "e5m2", "bf16", "f32"), BYTES, BF16),
        (("s8", "u8", "s32", "s32"), BYTES, S32),
    ],
)
def test_tensor_maps_of_every_type_are_of_what_lies_in_memory(launched, types, operands, result):
    text = "tiling,tma-insertion,swizzle-selection,epilogue-staging"
    _, _, driver = launched(MatmulSpec(256, 512, 256, *types), text)
    assert [each["dtype"] for each in driver.encoded] == [operands, operands, result]


@pytest.mark.parametrize("more, early", [("", [EARLY]), (",lower-to-nvvm{pdl=false}", [])])
def test_dependent_launch_is_asked_for_only_where_the_kernel_waits(launched, more, early):
    _, _, driver = launched(MatmulSpec(256, 512, 128), f"{PRESETS['v5']}{more}")
    assert config_of(driver)["attrs"][1:] == early


def test_a_cluster_that_is_not_portable_gets_leave(launched):
    pipeline = "tiling{tile=128x64x64},tma-insertion,swizzle-selection,clustering{shape=4x4}"
    _, _, driver = launched(MatmulSpec(512, 256, 64), pipeline)
    leave = [arguments[1:] for arguments in driver.arguments("cuFuncSetAttribute")]
    assert leave[1:] == [(14, 1)]
