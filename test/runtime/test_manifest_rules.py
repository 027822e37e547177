"""What a manifest must say: what breaks a rule, or contradicts another part, is refused by name."""

import pytest
from edited_manifests import change_manifest, refusal

from tilewright.compiler.bundle_writer import write_bundle
from tilewright.runtime import read_bundle
from tilewright.runtime.bundles.manifest_rules import memory_contradictions
from tilewright.runtime.element_types import ITEM_BYTES


def set_at(*keys, to):
    def change(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = to

    return change


def arguments_at(*indices):
    """Says that the inputs are these of two arguments."""

    def change(manifest):
        manifest["arguments"] = ["x", "w"]
        for tensor, index in zip(manifest["tensors"], indices, strict=False):
            tensor["argument"] = {"index": index, "transposed": False}

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (set_at("grid", to=[1, 1]), "grid: must have 3 items, got 2"),
        (
            set_at("block", 0, to=0),
            "block[0]: must be an integer from 1 to 9223372036854775807, got 0",
        ),
        (set_at("grid", 1, to=True), "grid[1]: must be an integer"),
        (set_at("entry", to=""), "entry: must be an identifier of at most 1024 characters, got ''"),
        (
            set_at("tensors", 1, "dtype", to="i4"),
            f"tensors[1].dtype: must be {' or '.join(map(repr, ITEM_BYTES))}, got 'i4'",
        ),
        (
            set_at("tensors", 0, "strides", to=[1]),
            "tensors[0]: must have one stride a dimension, got [1]",
        ),
        (
            set_at("tensors", 1, "shape", to=[4, 15]),
            "tensors: must have shapes [m, k], [n, k] and [m, n], got [[6, 16], [4, 15], [6, 4]]",
        ),
        (
            set_at("tensors", 0, "role", to="output"),
            "tensors: must be two inputs or more and an output, got ['output', 'input', 'output']",
        ),
        (
            set_at("tensors", 2, "role", to="input"),
            "tensors: must be two inputs or more and an output, got ['input', 'input', 'input']",
        ),
        (set_at("tensors", 1, "name", to="a"), "tensors: must have different names, got"),
        (
            set_at("parameters", 0, "box", to=[8, 257]),
            "parameters[0].box[1]: must be an integer from 1 to 256, got 257",
        ),
        (
            set_at("parameters", 0, "box", to=[8, 2, 2]),
            "parameters[0].box: must have 2 items, got 3",
        ),
        (
            set_at("parameters", 0, "swizzle", to="96B"),
            "parameters[0].swizzle: must be 'none' or '32B' or '64B' or '128B', got '96B'",
        ),
        (
            set_at("parameters", 1, "kind", to="scalar"),
            "parameters[1].kind: must be 'tensor_map' or 'pointer' or 'size' or 'workspace',"
            " got 'scalar'",
        ),
        (
            set_at("parameters", 2, "tensor", to="d"),
            "parameters[2].tensor: must be one of ['a', 'b', 'c'], got 'd'",
        ),
        (set_at("epilogue", "result", to=1), "epilogue.result: must be an id that exists, got 1"),
        (
            set_at("workspace_bytes", to=64),
            "workspace_bytes: must be the 0 of the parameters, got 64",
        ),
        (
            lambda m: m.update(names={"barriers": [], "roles": [{"name": "mma"}]}),
            "names.roles[0]: must have the field 'first_warp', got none",
        ),
        (
            lambda m: m.update(arguments=["x"]),
            "tensors[0]: must have an argument beside 1 arguments, got none",
        ),
        (
            set_at("tensors", 0, "argument", to={"index": 0, "transposed": False}),
            "tensors[0]: must have no argument beside 0 arguments, got one",
        ),
        (arguments_at(0, 2), "tensors[1].argument.index: must be below 2, got 2"),
        (lambda m: m.pop("resources"), "must have the field 'resources', got none"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused(change, sentence, tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    change_manifest(path, change)
    message = refusal(path)
    assert message.startswith(f"{path}: manifest")
    assert sentence in message


def barriers(**changed):
    entry = {"name": "full", "offset_bytes": 0, "count": 4, **changed}
    return lambda m: m.update(names={"barriers": [entry], "roles": []})


def operation(name, operands, **attributes):
    entry = {"name": name, "operands": operands, "attributes": attributes}
    return lambda m: m["epilogue"]["operations"].append(entry)


def tiles(grid, cluster=(1, 1, 1), scheduler="none"):
    schedule = {"tile": [2, 3, 64], "scheduler": scheduler}
    return lambda m: m.update(grid=grid, cluster=list(cluster), schedule=schedule)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (set_at("cluster", to=[2, 1, 1]), "grid: must be a multiple of the cluster [2, 1, 1], got"),
        (
            lambda m: m.update(cluster=[2, 1, 1], preferred_cluster=[3, 1, 1]),
            "preferred_cluster: must be a multiple of the cluster [2, 1, 1], got [3, 1, 1]",
        ),
        (
            set_at("preferred_cluster", to=[2, 1, 1]),
            "grid: must be a multiple of the cluster [2, 1, 1], got",
        ),
        (
            set_at("preferred_cluster", to=[4, 4, 2]),
            "preferred_cluster: must have a product of at most 16, got [4, 4, 2]",
        ),
        (set_at("grid", 1, to=65_536), "grid[1]: must be at most 65535, got 65536"),
        (set_at("block", 0, to=1025), "block[0]: must be at most 1024, got 1025"),
        (set_at("block", to=[512, 2, 2]), "block: must have a product of at most 1024, got"),
        (
            set_at("dynamic_shared_bytes", to=232_440),
            "dynamic_shared_bytes: must be at most 232448 with static shared memory, got 232456",
        ),
        (
            tiles([2, 2, 1]),
            "grid: must be [3, 2, 1], a CTA for each tile of [2, 3] of an output of [6, 4],"
            " got [2, 2, 1]",
        ),
        (tiles([4, 2, 1], scheduler="clc"), "grid: must be [3, 2, 1], a CTA for each tile"),
        (tiles([3, 2, 1], (1, 1, 2)), "grid: must be a multiple of the cluster [1, 1, 2]"),
        (
            tiles([3, 2, 1], scheduler="static"),
            "grid: must be one row of clusters for at most 6 tiles, got [3, 2, 1]",
        ),
        (
            barriers(count=2**40),
            "names.barriers[0]: must end within the 4096 bytes of dynamic shared memory",
        ),
        (barriers(offset_bytes=4072), "names.barriers[0]: must end within the 4096 bytes"),
        (
            lambda m: m.update(
                names={"barriers": [], "roles": [{"name": "x", "first_warp": 3, "warps": 2}]}
            ),
            "names.roles[0]: must end within the 4 warps of the block, got 5",
        ),
        (
            set_at("tensors", 0, "strides", to=[2**44, 1]),
            "tensors[0]: must span at most 140737488355328 bytes, got",
        ),
        (
            set_at("tensors", 2, "strides", to=[3, 1]),
            "tensors[2]: must have strides that keep elements apart, got [3, 1] for [6, 4]",
        ),
        (set_at("tensors", 2, "strides", to=[0, 1]), "must have strides that keep elements apart"),
        (set_at("tensors", 0, "strides", to=[0, 1]), "must have strides that keep elements apart"),
        (
            set_at("parameters", 0, "dtype", to="f32"),
            "parameters[0].dtype: must be as wide as the tensor's bf16, got 'f32'",
        ),
        (
            set_at("parameters", 0, "dims", to=[16, 7]),
            "parameters[0]: must reach over the 192 bytes of tensor 'a', got 224",
        ),
        (
            set_at("parameters", 0, "strides_bytes", to=[24]),
            "parameters[0].strides_bytes: must be multiples of 16, got [24]",
        ),
        (
            set_at("parameters", 0, "box", to=[9, 6]),
            "parameters[0].box: must have rows of a multiple of 16 bytes, at most 18",
        ),
        (
            lambda m: m["parameters"][0].update(swizzle="32B", box=[24, 6]),
            "parameters[0].box: must have rows of a multiple of 16 bytes, at most 32"
            " for swizzle '32B', got 48",
        ),
        (
            set_at("parameters", 1, "alignment_bytes", to=6),
            "parameters[1].alignment_bytes: must be a power of two, got 6",
        ),
        (operation("arith.addf", [0]), "operations[0].operands: must be 2 of arith.addf, got 1"),
        (operation("arith.constant", []), "operations[0].attributes.value: must be a number"),
        (operation("arith.truncf", [0]), "operations[0].attributes.type: must be bf16 or f16"),
        (set_at("schedule", to={"x": float("nan")}), "schedule: must be an object of finite"),
        (set_at("entry", to="a b"), "entry: must be an identifier"),
        (set_at("entry", to="k" * 1025), "entry: must be an identifier"),
        (lambda m: m["tensors"].extend([m["tensors"][0]] * 99), "must have 3 to 64 items, got 102"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(
    change, sentence, tmp_path, manifest, ptx, cubin
):
    """Also where the manifest's hash is right: a bundle's maker is not its reader's friend."""
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    change_manifest(path, change, seal=True)
    assert sentence in refusal(path)


@pytest.mark.parametrize(
    "change",
    [
        tiles([3, 2, 1]),
        tiles([4, 2, 1], (2, 1, 1)),
        tiles([3, 2, 2], (1, 1, 2), "clc"),
        tiles([2, 1, 1], (2, 1, 1), "static"),
        tiles([9, 9, 1], scheduler="of a later version"),
        barriers(offset_bytes=4064),
        operation("arith.constant", [], value=float("inf")),
        operation("math.of_a_later_version", [0, 0, 0]),
    ],
)
def test_parts_that_agree_are_read(change, tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    change_manifest(path, change, seal=True)
    read_bundle(path)


def test_the_operands_of_every_operation_that_the_reference_knows_are_counted():
    from tilewright.runtime.bundles.manifest_rules import OPERANDS
    from tilewright.runtime.judge.epilogue import OPERATIONS

    assert set(OPERANDS) == {*OPERATIONS, "arith.constant", "arith.cmpf", "arith.truncf"}


@pytest.mark.parametrize(("strides", "refused"), [([1], []), ([16], ["[1] of a vector, got [16]"])])
def test_a_vector_has_its_elements_side_by_side(strides, refused):
    offsets = {"name": "offsets", "role": "input", "dtype": "s32", "shape": [5], "strides": strides}
    found = list(memory_contradictions([offsets], "tensors"))
    assert found == [f"tensors[0].strides: must be {each}" for each in refused]
