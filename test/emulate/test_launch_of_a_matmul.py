"""A compiled matmul, launched from a file: clusters, tensor maps and tensor memory together."""

import numpy as np

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec

MAP_FIELDS = (
    "tensor",
    "dtype",
    "dims",
    "strides_bytes",
    "box",
    "element_strides",
    "interleave",
    "swizzle",
    "l2_promotion",
    "oob_fill",
)


def tensor_of(number, declared):
    fields = {name: declared[name] for name in ("name", "role", "dtype", "shape", "strides")}
    if declared["role"] == "input":
        fields["contents"] = {"random": number, "distribution": "integers"}
    return fields


def launch_of(manifest):
    """The launch file that says what a bundle's manifest says."""
    parameters, maps = [], []
    for number, each in enumerate(manifest["parameters"]):
        if each["kind"] == "pointer":
            parameters.append({"pointer": each["tensor"]})
            continue
        name = f"map{number}"
        maps.append({"name": name, **{field: each[field] for field in MAP_FIELDS}})
        parameters.append({"tensor_map": name})
    return {
        **{name: manifest[name] for name in ("entry", "grid", "cluster", "block")},
        "shared_bytes": manifest["dynamic_shared_bytes"],
        "tensors": [tensor_of(i, declared) for i, declared in enumerate(manifest["tensors"])],
        "tensor_maps": maps,
        "parameters": parameters,
    }


def test_a_compiled_matmul_computes_the_product(run):
    compiled = compile_matmul(MatmulSpec(m=136, n=72, k=80, c_dtype="f32"), preset="v4")
    launch = launch_of(compiled.manifest)
    result = run(compiled.ptx, launch, seed=7)
    a, b = (
        np.random.default_rng(i).integers(-4, 4, shape, np.int64, endpoint=True)
        for i, shape in enumerate([(136, 80), (72, 80)])
    )
    assert len(launch["tensor_maps"]) >= 2
    assert (result.outputs["c"] == a @ b.T).all()
