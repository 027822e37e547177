"""What a kernel finds in the memory of its tensors, byte by byte."""

import struct

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime import LaunchError

CURE = "; save it again with numpy.save"


def declared(dtype, contents, shape=(6,), **fields):
    return {
        "name": "a",
        "role": "input",
        "dtype": dtype,
        "shape": list(shape),
        "contents": contents,
        **fields,
    }


@pytest.mark.parametrize(
    ("dtype", "value", "wanted"),
    [
        ("bf16", 1.5, "c03f"),
        ("f16", -2, "00c0"),
        ("f32", 0.1, "cdcccc3d"),
        ("f64", "-inf", "000000000000f0ff"),
        ("e4m3", 448, "7e"),
        ("e5m2", -0.5, "b8"),
        ("ue8m0", 4, "81"),
        ("u8", 255, "ff"),
        ("u16", 513, "0102"),
        ("u32", 7, "07000000"),
        ("u64", 2**64 - 1, "ffffffffffffffff"),
        ("s8", -128, "80"),
        ("s16", -2, "feff"),
        ("s32", -(2**31), "00000080"),
        ("s64", 2**62 + 1, "0100000000000040"),
        ("e2m1", -6, "ff"),
    ],
)
def test_a_constant_has_the_bytes_of_its_type(dtype, value, wanted, memory_of):
    size = len(wanted) // 2
    tensor = declared(dtype, {"constant": value}, (2,))
    assert memory_of(tensor, size).hex() == wanted


def test_a_nan_is_a_nan(memory_of):
    raw = memory_of(declared("f32", {"constant": "nan"}, (1,)), 4)
    assert np.isnan(struct.unpack("<f", raw)[0])


def test_a_ramp_counts_in_row_major_order(memory_of):
    raw = memory_of(declared("s16", {"ramp": -3, "step": 5}, (2, 3)), 12)
    assert struct.unpack("<6h", raw) == (-3, 2, 7, 12, 17, 22)


def test_a_ramp_starts_again_at_its_modulo(memory_of):
    raw = memory_of(declared("f16", {"ramp": 0.5, "step": -0.25, "modulo": 4}, (6,)), 12)
    assert struct.unpack("<6e", raw) == (0.5, 0.25, 0.0, -0.25, 0.5, 0.25)


def test_an_integer_ramp_wraps_at_its_width(memory_of):
    raw = memory_of(declared("u8", {"ramp": 1, "step": -1}, (4,)), 4)
    assert list(raw) == [1, 0, 255, 254]


def test_packed_elements_fill_the_low_half_first(memory_of):
    tensor = declared("e2m1", {"ramp": 1, "step": 0.5}, (5,))
    # 1, 1.5, 2, 2.5 (to even: 2), 3 are the codes 2, 3, 4, 4, 5; the last half byte is poison.
    assert memory_of(tensor, 3).hex() == "3244f5"


def test_strides_leave_poison_between_the_elements(memory_of):
    tensor = declared("u8", {"ramp": 1}, (2, 3), strides=[1, 4])
    assert memory_of(tensor, 10).hex() == "0104ffff0205ffff0306"


def test_a_stride_of_zero_repeats(memory_of):
    tensor = declared("u8", {"constant": 9}, (4, 3), strides=[0, 1])
    assert memory_of(tensor, 3).hex() == "090909"


def test_normal_numbers_are_fixed_by_their_seed(memory_of):
    draw = [
        np.frombuffer(
            memory_of(declared("f32", {"random": seed, "distribution": "normal"}, (1000,)), 4000),
            np.float32,
        )
        for seed in (3, 3, 4)
    ]
    assert (draw[0] == draw[1]).all() and (draw[0] != draw[2]).mean() > 0.99
    assert abs(draw[0].mean()) < 0.15 and 0.9 < draw[0].std() < 1.1


def test_uniform_numbers_keep_their_bounds(memory_of):
    contents = {"random": 1, "distribution": "uniform", "low": 2, "high": 3}
    values = np.frombuffer(memory_of(declared("f32", contents, (1000,)), 4000), np.float32)
    assert values.min() >= 2 and values.max() <= 3 and 2.45 < values.mean() < 2.55


@pytest.mark.parametrize(
    ("dtype", "contents", "wanted"),
    [
        ("s8", {}, range(-4, 5)),
        ("u8", {}, range(5)),
        ("s8", {"low": -2, "high": 1}, range(-2, 2)),
    ],
)
def test_random_integers_take_every_value_of_their_range(dtype, contents, wanted, memory_of):
    contents = {"random": 5, "distribution": "integers", **contents}
    raw = memory_of(declared(dtype, contents, (800,)), 800)
    values = np.frombuffer(raw, np.int8 if dtype == "s8" else np.uint8)
    assert sorted(set(values.tolist())) == list(wanted)


@pytest.mark.parametrize(
    ("dtype", "array"),
    [
        ("f32", np.linspace(-1, 2, 6, dtype=np.float32)),
        ("f32", np.arange(6, dtype=np.uint32)),
        ("bf16", np.arange(6, dtype=np.uint16)),
        ("bf16", np.linspace(-1, 2, 6).astype(ml_dtypes.bfloat16)),
        ("e4m3", np.linspace(-1, 2, 6).astype(ml_dtypes.float8_e4m3fn)),
        ("s64", np.arange(6) - 3),
    ],
)
def test_a_file_gives_its_bytes(dtype, array, memory_of, tmp_path):
    np.save(tmp_path / "a.npy", array)
    assert memory_of(declared(dtype, {"file": "a.npy"}), array.nbytes) == array.tobytes()


def test_a_file_in_column_order_keeps_its_elements(memory_of, tmp_path):
    array = np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    np.save(tmp_path / "a.npy", array)
    assert list(memory_of(declared("u8", {"file": "a.npy"}, (2, 3)), 6)) == list(range(6))


def test_a_file_of_packed_elements_has_one_code_a_byte(memory_of, tmp_path):
    np.save(tmp_path / "a.npy", np.array([1, 15, 7, 8], np.uint8))
    assert memory_of(declared("e2m1", {"file": "a.npy"}, (4,)), 2).hex() == "f187"


def refusal(memory_of, dtype="f32", shape=(6,)) -> str:
    with pytest.raises(LaunchError) as caught:
        memory_of(declared(dtype, {"file": "a.npy"}, shape), 1)
    return str(caught.value).split("launch.json: tensors[0].contents.file: ", 1)[1]


def test_a_file_of_another_shape_is_refused(memory_of, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.float32))
    wanted = f"must hold an array of shape [6], got [2, 3] in '{tmp_path}/a.npy'{CURE}"
    assert refusal(memory_of) == wanted


def test_a_file_of_another_type_is_refused(memory_of, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(6, np.float64))
    wanted = f"must hold float32 or uint32 for f32, got float64 in '{tmp_path}/a.npy'{CURE}"
    assert refusal(memory_of) == wanted
    wanted = f"must hold uint16 for bf16, got float64 in '{tmp_path}/a.npy'{CURE}"
    assert refusal(memory_of, "bf16") == wanted


def test_a_code_that_does_not_fit_is_refused(memory_of, tmp_path):
    np.save(tmp_path / "a.npy", np.array([1, 16], np.uint8))
    wanted = f"must hold codes from 0 to 15 for e2m1, got 16 in '{tmp_path}/a.npy'{CURE}"
    assert refusal(memory_of, "e2m1", (2,)) == wanted


def test_a_file_that_is_not_there_is_refused(memory_of, tmp_path):
    assert refusal(memory_of) == f"must be a .npy file, got none at '{tmp_path}/a.npy'{CURE}"


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: b"PK\x03\x04",
        lambda raw: b"hello world, this is no array",
        lambda raw: raw[:40],
        lambda raw: raw[:-1],
        lambda raw: raw.replace(b"(6,)", b"(-6,"),
        lambda raw: raw.replace(b"<f4", b"|O "),
        lambda raw: raw.replace(b"(6,), }     ", b"(999999999,)"),
    ],
)
def test_a_damaged_file_is_refused(damage, memory_of, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(6, np.float32))
    path = tmp_path / "a.npy"
    path.write_bytes(damage(path.read_bytes()))
    found = refusal(memory_of)
    assert found.startswith("must be a whole .npy file, got ") and found.endswith(CURE)
    assert "\n" not in found


def test_pickled_objects_are_never_loaded(memory_of, tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}] * 6), allow_pickle=True)
    assert refusal(memory_of).startswith("must be a whole .npy file, got ")


def test_an_archive_of_arrays_is_refused(memory_of, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(6))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    wanted = f"must be a .npy file of one array, got a .npz at '{tmp_path}/a.npy'{CURE}"
    assert refusal(memory_of) == wanted
