"""Launch files that are wrong in themselves: one whole message each."""

import pytest

from tilewright.runtime import LaunchError

A_MAP = {"name": "m", "tensor": "a", "dims": [4, 3], "strides_bytes": [8], "box": [4, 3]}
RANDOM = {"random": 1, "distribution": "uniform"}
FIELDS = (
    "'entry', 'grid', 'block', 'tensors', 'parameters', 'schema', 'cluster', 'preferred_cluster',"
    " 'shared_bytes',"
    " 'resident', 'tensor_maps', 'names'"
)
DTYPES = (
    "'bf16' or 'f16' or 'f32' or 'f64' or 'e4m3' or 'e5m2' or 'ue8m0' or 'e2m1' or 'u8' or 'u16'"
    " or 'u32' or 'u64' or 's8' or 's16' or 's32' or 's64'"
)
INTEGER = "an integer from 1 to 9223372036854775807"
NATURAL = "an integer from 0 to 9223372036854775807"


def bend(launch, path, value):
    """Set (or with `...` delete) the entry at a path of keys and indices."""
    for key in path[:-1]:
        launch = launch[key]
    if value is ...:
        del launch[path[-1]]
    else:
        launch[path[-1]] = value


def refusal(run, copying, changes) -> str:
    ptx, launch = copying
    for path, value in changes:
        bend(launch, path, value)
    with pytest.raises(LaunchError) as caught:
        run(ptx, launch)
    where, message = str(caught.value).split("launch.json: ", 1)
    assert where.startswith("/") and message.endswith("; docs/emulate.md has the schema")
    return message.removesuffix("; docs/emulate.md has the schema")


TOP = [
    (["entry"], ..., "entry: must be given, got none"),
    (["entry"], "", "entry: must be a text, got ''"),
    (
        ["names"],
        {"barriers": [{"name": "full", "offset_bytes": 0}]},
        "names.barriers[0].count: must be given, got none",
    ),
    (
        ["names"],
        {"roles": [{"name": "mma", "first_warp": 32, "warps": 1}]},
        "names.roles[0].first_warp: must be an integer from 0 to 31, got 32",
    ),
    (["colour"], 3, f"colour: must be one of the fields {FIELDS}, got it"),
    (["schema"], 2, "schema: must be 1, got 2"),
    (["grid"], 3, "grid: must be a list, got 3"),
    (["grid"], [1, 1, 1, 1], "grid: must have 1 to 3 items, got 4"),
    (["grid"], [1, 0], f"grid[1]: must be {INTEGER}, got 0"),
    (["block"], [True], f"block[0]: must be {INTEGER}, got True"),
    (["cluster"], [2], "grid: must be a multiple of the cluster [2], got [1]"),
    (["shared_bytes"], -1, f"shared_bytes: must be {NATURAL}, got -1"),
    (["resident"], 0, f"resident: must be {INTEGER}, got 0"),
    (["tensors"], {}, "tensors: must be a list, got {}"),
    (["parameters"], None, "parameters: must be a list, got None"),
]
TENSORS = [
    (["name"], "../x", "name: must be a name of letters, digits, '_', '-', '.', got '../x'"),
    (["name"], ".x", "name: must be a name of letters, digits, '_', '-', '.', got '.x'"),
    (["role"], "weight", "role: must be 'input' or 'output' or 'inout', got 'weight'"),
    (["dtype"], "fp16", f"dtype: must be {DTYPES}, got 'fp16'"),
    (["shape"], [], "shape: must have 1 to 8 items, got 0"),
    (["shape"], [2, 1.5], f"shape[1]: must be {INTEGER}, got 1.5"),
    (
        ["shape"],
        [2**31, 2],
        "shape: must leave all tensors within 4294967296 bytes, got 8589934592 up to here",
    ),
    (["strides"], [4], "strides: must have 2 items, one an axis, got 1"),
    (["strides"], [4, -1], f"strides[1]: must be {NATURAL}, got -1"),
    (["align"], 48, "align: must be a power of two up to 1048576, got 48"),
    (["align"], 2**21, "align: must be a power of two up to 1048576, got 2097152"),
    (["offset_bytes"], -4, "offset_bytes: must be an integer from 0 to 1048576, got -4"),
    (["contents"], ..., "contents: must be given for an input, got none"),
    (["contents"], "ramp", "contents: must be an object, got 'ramp'"),
    (
        ["contents"],
        {"constant": 1, "ramp": 0},
        "contents: must have exactly one of the fields 'random', 'ramp', 'constant', 'file',"
        " got 'ramp', 'constant'",
    ),
    (
        ["contents"],
        {},
        "contents: must have exactly one of the fields 'random', 'ramp', 'constant', 'file',"
        " got none",
    ),
    (["contents"], {"random": 1}, "contents.distribution: must be given, got none"),
    (
        ["contents"],
        {"random": 1, "distribution": "zipf"},
        "contents.distribution: must be 'normal' or 'uniform' or 'integers', got 'zipf'",
    ),
    (["contents"], RANDOM, "contents.distribution: must be 'integers' for s16, got 'uniform'"),
    (
        ["contents"],
        {"random": 1, "distribution": "integers", "low": 5},
        "contents.high: must be at least low, which is 5, got 4",
    ),
    (
        ["contents"],
        {"random": 1, "distribution": "integers", "low": 0.5},
        "contents.low: must be an integer here, got 0.5",
    ),
    (
        ["contents"],
        {"random": 1, "distribution": "integers", "low": "nan"},
        "contents.low: must be a number within ±1e+38, got 'nan'",
    ),
    (
        ["contents"],
        {"constant": "minus"},
        "contents.constant: must be a number, 'nan', 'inf' or '-inf', got 'minus'",
    ),
    (["contents"], {"constant": "nan"}, "contents.constant: must be an integer here, got 'nan'"),
    (
        ["contents"],
        {"constant": 40000},
        "contents.constant: must be from -32768 to 32767, got 40000",
    ),
    (["contents"], {"ramp": 0, "modulo": 0}, f"contents.modulo: must be {INTEGER}, got 0"),
    (["contents"], {"ramp": 0, "step": 0.5}, "contents.step: must be an integer here, got 0.5"),
    (["contents"], {"file": ""}, "contents.file: must be a text, got ''"),
]
MAPS = [
    (["tensor"], "c", "tensor: must be one of 'a', 'bytes', got 'c'"),
    (["box"], [4, 300], "box[1]: must be an integer from 1 to 256, got 300"),
    (["box"], [4], "box: must have 2 items, got 1"),
    (["dims"], [4], "strides_bytes: must have 0 items, got 1"),
    (["element_strides"], [1], "element_strides: must have 2 items, got 1"),
    (["element_strides"], [1, 9], "element_strides[1]: must be an integer from 1 to 8, got 9"),
    (
        ["offset_bytes"],
        2**61,
        "offset_bytes: must be an integer from -1152921504606846976 to"
        " 1152921504606846976, got 2305843009213693952",
    ),
    (["swizzle"], 3, "swizzle: must be a text, got 3"),
]
STRUCT = {"struct": [{"at": 0, "pointer": "a"}], "size_bytes": 8}
PARAMETERS = [
    ({}, ": must have exactly one of the fields 'pointer', 'tensor_map', 'tensor_map_array',"
     " 'pointer_array', 'scalar', 'hex', 'struct', got none"),
    ({"pointer_array": ["a", "m"]}, ".pointer_array[1]: must be one of 'a', 'bytes', got 'm'"),
    ({"tensor_map_array": ["m"]}, ".tensor_map_array[0]: must be one of none, got 'm'"),
    ({"tensor_map_array": []}, ".tensor_map_array: must have 1 to 256 items, got 0"),
    ({"pointer": "c"}, ".pointer: must be one of 'a', 'bytes', got 'c'"),
    ({"pointer": "a", "offset_bytes": 24}, ".offset_bytes: must be below the tensor's 24 bytes,"
     " got 24"),
    ({"tensor_map": "m"}, ".tensor_map: must be one of none, got 'm'"),
    ({"scalar": 1}, ".type: must be given, got none"),
    ({"scalar": 256, "type": "u8"}, ".scalar: must be an integer from 0 to 255 for u8, got 256"),
    ({"scalar": 1.0, "type": "s8"}, ".scalar: must be an integer from -128 to 127 for s8, got 1.0"),
    ({"hex": "abc"}, ".hex: must be pairs of hexadecimal digits, got 'abc'"),
    ({**STRUCT, "size_bytes": 7}, ".struct[0].at: must leave the field within 7 bytes,"
     " got 0 for 8 bytes"),
    ({**STRUCT, "size_bytes": 0}, ".size_bytes: must be an integer from 1 to 32764, got 0"),
    ({"struct": [{"pointer": "a"}], "size_bytes": 8}, ".struct[0].at: must be given, got none"),
    ({"struct": [{"at": 0, "pointer": "c"}], "size_bytes": 8},
     ".struct[0].pointer: must be one of 'a', 'bytes', got 'c'"),
    ({"struct": [{"at": 0, "pointer": "a"}, {"at": 7, "hex": "00"}], "size_bytes": 8},
     ".struct[1].at: must not overlap an earlier field, got 7"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), TOP)
def test_a_wrong_launch_is_refused_with_its_path(path, value, message, run, copying):
    assert refusal(run, copying, [(path, value)]) == message


@pytest.mark.parametrize(("path", "value", "message"), TENSORS)
def test_a_wrong_tensor_is_refused_with_its_path(path, value, message, run, copying):
    found = refusal(run, copying, [(["tensors", 0, *path], value)])
    assert found == f"tensors[0].{message}"


def test_two_tensors_need_two_names(run, copying):
    found = refusal(run, copying, [(["tensors", 1, "name"], "a")])
    assert found == "tensors[1].name: must differ from 'a', got 'a'"


@pytest.mark.parametrize(("path", "value", "message"), MAPS)
def test_a_wrong_tensor_map_is_refused_with_its_path(path, value, message, run, copying):
    changes = [(["tensor_maps"], [dict(A_MAP)])]
    if value is ... or path[0] in A_MAP:
        changes.append((["tensor_maps", 0, *path], value))
    else:
        changes = [(["tensor_maps"], [{**A_MAP, path[0]: value}])]
    assert refusal(run, copying, changes) == f"tensor_maps[0].{message}"


IM2COL = {"lower": [-1], "upper": [0], "channels": 8, "pixels": 16}


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({}, ": must have exactly one of the fields 'box', 'im2col', got none"),
        ({"box": [1, 1], "im2col": IM2COL},
         ": must have exactly one of the fields 'box', 'im2col', got 'box', 'im2col'"),
        ({"im2col": IM2COL | {"pixels": 1025}},
         ".im2col.pixels: must be an integer from 1 to 1024, got 1025"),
        ({"im2col": IM2COL | {"upper": [0, 0]}}, ".im2col.upper: must have 1 items, got 2"),
        ({"im2col": IM2COL | {"lower": [-32769]}},
         ".im2col.lower[0]: must be an integer from -32768 to 32767, got -32769"),
        ({"im2col": IM2COL}, ".name: must be in a parameter, got 'm' in none"),
    ],
)  # fmt: skip
def test_a_tensor_map_has_a_box_or_columns_of_pixels(field, message, run, copying):
    mapped = {"name": "m", "tensor": "a", "dims": [8, 4, 3], "strides_bytes": [16, 64], **field}
    assert refusal(run, copying, [(["tensor_maps"], [mapped])]) == f"tensor_maps[0]{message}"


@pytest.mark.parametrize(("parameter", "message"), PARAMETERS)
def test_a_wrong_parameter_is_refused_with_its_path(parameter, message, run, copying):
    found = refusal(run, copying, [(["parameters", 1], parameter)])
    assert found == f"parameters[1]{message}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(["tensors", 1, "name"], "c"), (["parameters", 1], {"pointer": "a"})],
         "tensors[1].name: must be in a parameter, got 'c' in none"),
        ([(["tensor_maps"], [A_MAP])],
         "tensor_maps[0].name: must be in a parameter, got 'm' in none"),
    ],
)  # fmt: skip
def test_what_no_parameter_names_is_refused(changes, message, run, copying):
    assert refusal(run, copying, changes) == message


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"barriers": [{"name": "x", "offset_bytes": 8, "count": 1}]},
         "barriers[0]: must end within the 0 bytes of dynamic shared memory, got 16"),
        ({"roles": [{"name": "x", "first_warp": 0, "warps": 2}]},
         "roles[0]: must end within the 1 warps of the block, got 2"),
        ({"roles": [{"name": "x", "first_warp": 0, "warps": 1}] * 2},
         "roles[1]: must not overlap names.roles[0], got 0 to 1 beside 0 to 1"),
    ],
)  # fmt: skip
def test_names_of_places_that_there_are_not_are_refused(names, message, run, copying):
    assert refusal(run, copying, [(["names"], names)]) == f"names.{message}"


def test_two_tensor_maps_need_two_names(run, copying):
    found = refusal(run, copying, [(["tensor_maps"], [A_MAP, A_MAP])])
    assert found == "tensor_maps[1].name: must differ from 'm', got 'm'"


def test_a_tensor_map_in_a_struct_is_aligned(run, copying):
    struct = {"struct": [{"at": 32, "tensor_map": "m"}], "size_bytes": 192}
    found = refusal(run, copying, [(["tensor_maps"], [A_MAP]), (["parameters", 0], struct)])
    assert found == "parameters[0].struct[0].at: must be a multiple of 64 for a map, got 32"


def test_an_output_has_no_contents(run, copying):
    found = refusal(run, copying, [(["tensors", 1, "contents"], {"constant": 0})])
    assert found == "tensors[1].contents: must be left out for an output, got 'constant'"


def test_an_inout_needs_contents(run, copying):
    found = refusal(run, copying, [(["tensors", 1, "role"], "inout")])
    assert found == "tensors[1].contents: must be given for an inout, got none"


@pytest.mark.parametrize("strides", [[0, 1], [3, 1], [1, 1]])
def test_elements_of_an_output_do_not_overlap(strides, run, copying):
    tensor = {"name": "bytes", "role": "output", "dtype": "u8", "shape": [2, 4]}
    found = refusal(run, copying, [(["tensors", 1], {**tensor, "strides": strides})])
    wanted = f"must give each element a place of its own, got {strides}"
    assert found == f"tensors[1].strides: {wanted}"


def test_normal_numbers_have_no_bounds(run, copying):
    contents = {"random": 1, "distribution": "normal", "low": 0}
    changes = [(["tensors", 0, "dtype"], "f16"), (["tensors", 0, "contents"], contents)]
    assert refusal(run, copying, changes) == (
        "tensors[0].contents: must not have 'low' or 'high' with the distribution 'normal',"
        " got them"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "the launch file: must be an object, got [1]"),
        ("{", "must be JSON, got Expecting property name enclosed in double quotes:"
         " line 1 column 2 (char 1)"),
        ("", "must be JSON, got Expecting value: line 1 column 1 (char 0)"),
    ],
)  # fmt: skip
def test_what_is_no_launch_is_refused(text, message, run, copying):
    with pytest.raises(LaunchError) as caught:
        run(copying[0], text)
    found = str(caught.value).split("launch.json: ", 1)[1]
    assert found == f"{message}; docs/emulate.md has the schema"


def test_deep_nesting_is_refused_not_crashed_on(run, copying):
    with pytest.raises(LaunchError, match=r"launch\.json: must be JSON, got "):
        run(copying[0], "[" * 200_000)
