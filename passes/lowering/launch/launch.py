"""Launch information of the lowered kernel, kept in the IR as one dictionary attribute."""

from __future__ import annotations

import json
from typing import Any

from ....dialects.dtypes import PADDED_TYPES, DType, operand_dtype, scaled_dtype, stored_dtype
from ....dialects.fallback import fallback_of
from ....dialects.mlir import ir
from ....dialects.sm.copies import TryCancelOp
from ....dialects.sm.memory import SharedMemoryOp, TensorMemoryOp, TermsOp
from ....dialects.sm.ring_memory import CopyRingOp, RingOp
from ....dialects.tile import MMAS, ElementOp, KernelOp, TensorMapOp
from ....dialects.tile.blockwise import BLOCKWISE_MMAS
from ....dialects.tile.groups import GroupDepthOp, GroupOp
from ....dialects.tile.outputs import WriteGroupOp
from ....dialects.tile.parts import WorkspaceOp, workspace_bytes
from ....dialects.tile.pieces import ApplyEpilogueOp
from ....dialects.tile.place import PlaceOp
from ....dialects.tile.quantized import WriteCodesOp, WriteScalesOp
from ....dialects.tile.scales import SCALED_MMAS, depth_of, mma_of
from ....dialects.tile.stores import WriteWordsOp, bytes_of_words
from ....dialects.tile.sums import ViewMmaOp
from ....dialects.tile.threads import WriteRowOp
from ....dialects.tile_types import (
    SmemType,
    bits_of,
    element_bytes,
    integers_of,
    is_padded,
    moved_bytes,
)
from ...base import SOURCE_ATTRIBUTE, attributes_of, is_swapped, walk
from ...batches import argument_of, transposed_of
from ...copy_width import UNIT_BYTES
from ...duals import arg_names, arguments_of_b, operand_names
from ...dynamic_rows import has_dynamic_size
from ...kernel_parameters import Parameter, parameters_of
from ...outputs import SCALES, outputs_of
from ...plan import cluster_of
from ..epilogue.pieces import alignment_bytes
from ..scales.block_scales import SCALE_BYTES
from .epilogue import describe_epilogues, describe_math, stores
from .names import describe_names
from .promotion import promotion
from .sizes import box_sizes, grid_of, map_dims, map_strides, shape_of, size_parameters, strides_of
from .weights import describe_weights, reads_beside_weights, say_weights

OFFSET_BYTES = 4  # of a group
SUM_BYTES = 4  # of neighbours
OTHER_ACCESSES = WriteCodesOp | WriteScalesOp | WriteGroupOp | WriteWordsOp | GroupOp | GroupDepthOp


def launch_attribute(kernel: KernelOp, mma: str) -> ir.StringAttr:
    """The launch as JSON text: grid, block, shared memory, tensors, parameters, epilogue."""
    return ir.StringAttr.get(json.dumps(describe_launch(kernel, mma), sort_keys=True))


def describe_launch(kernel: KernelOp, mma: str) -> dict[str, Any]:
    """The manifest's part that the kernel determines (docs/manifest.md); it multiplies by `mma`."""
    memory = walk(kernel, SharedMemoryOp | RingOp | CopyRingOp | TensorMemoryOp)
    (shared,) = [op for op in memory if isinstance(op, SharedMemoryOp)]
    return {
        "entry": kernel.sym_name.value,
        "grid": grid_of(kernel, _tile(kernel)[0]),
        **_clusters(kernel),
        "block": [kernel.threads.value, 1, 1],
        "dynamic_shared_bytes": shared.bytes.value,
        **_workspace_bytes(kernel),
        "schedule": _schedule(kernel, memory),
        "tensors": _tensors(kernel, mma),
        "source": _source(kernel),
        "parameters": [
            *_parameters(kernel),
            *_workspaces(kernel),
            *size_parameters(kernel),
        ],
        **describe_epilogues(kernel),
        **describe_math(kernel),
        **_blockwise(kernel),
        **describe_weights(kernel),
        **_terms(kernel),
        "names": describe_names(kernel),
    }


def _clusters(kernel: KernelOp) -> dict[str, Any]:
    """The cluster, and the larger one that the launch prefers, if it does."""
    cluster, fallback = integers_of(kernel.cluster), fallback_of(kernel)
    if fallback is None:
        return {"cluster": cluster}
    return {"cluster": fallback, "preferred_cluster": cluster}


def _workspaces(kernel: KernelOp) -> list[dict[str, Any]]:
    """Memory for each tile of the grid besides the tensors."""
    return [
        {"kind": "workspace", "tile_bytes": workspace_bytes(op), "start": op.start.value}
        for op in walk(kernel, WorkspaceOp)
    ]


def _workspace_bytes(kernel: KernelOp) -> dict[str, Any]:
    """The workspace bytes of all tiles, or of one tile if their number is known only at launch."""
    grid = integers_of(kernel.grid)
    tiles = 1 if has_dynamic_size(kernel) else grid[0] * grid[1]
    return {"workspace_bytes": tiles * sum(each["tile_bytes"] for each in _workspaces(kernel))}


def _split(kernel: KernelOp) -> dict[str, Any]:
    """How many CTAs share a tile, and whether they are of a cluster or of the grid."""
    parts = integers_of(kernel.grid)[2]
    over = {"split_k_over": "grid"} if parts > integers_of(kernel.cluster)[2] else {}
    return {"split_k": parts, **over}


def _schedule(kernel: KernelOp, memory: list[Any]) -> dict[str, Any]:
    (m, n), depth, swizzles = _tile(kernel)
    rings = [op.ring.type for op in memory if isinstance(op, RingOp | CopyRingOp)]
    stages = [ring.stages for ring in rings if isinstance(ring.tiles[0], SmemType)]
    columns = [op.columns.value for op in memory if isinstance(op, TensorMemoryOp)]
    cluster = cluster_of(kernel)
    return {
        "tile": [m, n, depth],
        "scheduler": _scheduler(kernel),
        "stages": max(stages, default=0),
        "cluster": [cluster.m, cluster.n],
        "pair": cluster.pair,
        **({"swapped": True} if is_swapped(kernel) else {}),
        **_split(kernel),
        "swizzle": swizzles,
        "tmem_columns": sum(columns),
    }


def _tile(kernel: KernelOp) -> tuple[tuple[int, int], int, list[str]]:
    """M and N of a tile of C, its K, and how A's and B's lie in shared memory, if they do."""
    mma = walk(kernel, (*MMAS, ViewMmaOp))[0]
    m, n = mma.acc.type.shape
    tile = m, n // len(arguments_of_b(kernel))
    if isinstance(mma, ViewMmaOp):
        return tile, mma.depth.value, ["none", "none"]
    a, b = mma.a.type.layout, mma.b.type.layout
    depth = depth_of(mma) if isinstance(mma, SCALED_MMAS) else max(a.k, b.k)  # weights in bytes
    return tile, depth, [a.swizzle, b.swizzle]


def _scheduler(kernel: KernelOp) -> str:
    """Who hands out tiles: nobody, as each CTA has one, a static stride, or launch control."""
    if walk(kernel, TryCancelOp):
        return "clc"
    in_loops = [isinstance(op.number.owner, ir.Block) for op in walk(kernel, PlaceOp)]
    return "static" if any(in_loops) else "none"


def _tensors(kernel: KernelOp, mma: str) -> list[dict[str, Any]]:
    names, operands = arg_names(kernel), operand_names(kernel)
    arguments = list(kernel.body.blocks[0].arguments)
    outputs = len(outputs_of(kernel))
    roles = [*("input" for _ in names[outputs:]), *("output" for _ in range(outputs))]
    tensors = [
        _tensor(kernel, argument, (name, role), mma if name in operands else None)
        for name, argument, role in zip(names, arguments, roles, strict=True)
    ]
    for scaled in walk(kernel, SCALED_MMAS)[:1]:
        types = [scaled.a_type.value, scaled.b_type.value]
        if is_swapped(kernel):
            types.reverse()
        types += [mma_of(scaled).scale] * 2
        for tensor, dtype in zip(tensors, types, strict=False):
            tensor["dtype"] = dtype  # of a view of bytes, and of scales without a sign
    say_weights(kernel, tensors)
    for tensor in tensors:
        if tensor["name"] == SCALES and tensor["dtype"] == "e4m3":
            tensor["dtype"] = "ue4m3"  # without a sign
    for tensor, argument in zip(tensors, arguments, strict=True):
        if is_padded(bits := ir.MemRefType(argument.type).element_type):  # an array of bytes
            *stack, rows, k = tensor["shape"]
            stored = moved_bytes(bits, k)
            strides = [*(rows * stored for _ in stack), stored, 1]
            tensor |= {"shape": [*stack, rows, stored], "strides": strides}
    return tensors


def _source(kernel: KernelOp) -> dict[str, Any]:
    """Which arguments of the source's function the inputs are (`tiling`)."""
    attributes = attributes_of(kernel)
    if SOURCE_ATTRIBUTE not in attributes:
        inputs = list(range(len(kernel.arg_names) - len(outputs_of(kernel))))
        return {"arguments": len(inputs), "inputs": inputs, "transposed": [False for _ in inputs]}
    described = ir.DictAttr(attributes[SOURCE_ATTRIBUTE])
    return {
        "arguments": ir.IntegerAttr(described["arguments"]).value,
        "inputs": integers_of(ir.ArrayAttr(described["inputs"])),
        "transposed": [ir.BoolAttr(flag).value for flag in ir.ArrayAttr(described["transposed"])],
    }


def _tensor(
    kernel: KernelOp, view: ir.Value, described: tuple[str, str], mma: str | None
) -> dict[str, Any]:
    """A view, its name and its role; `mma` is what multiplies it, None where nothing does."""
    type_ = ir.MemRefType(view.type)
    element = str(type_.element_type)
    dtype = operand_dtype(element, mma) if mma else stored_dtype(element)
    dtype = dtype or scaled_dtype(element)
    return {
        "name": described[0],
        "role": described[1],
        "dtype": _name(dtype),
        "shape": shape_of(kernel, view, type_),
        "strides": strides_of(type_),
    }


def _name(dtype: DType | None) -> str:
    assert dtype is not None  # every view holds a type that the passes before this one let through
    return dtype.name


def _parameters(kernel: KernelOp) -> list[dict[str, Any]]:
    found, others = stores(kernel), [_access(op) for op in walk(kernel, OTHER_ACCESSES)]
    others += [(each, SCALE_BYTES) for each in _blockwise_scales(kernel)]
    others += reads_beside_weights(kernel)
    return [_parameter(kernel, each, found, others) for each in parameters_of(kernel)]


def _parameter(
    kernel: KernelOp, parameter: Parameter, found: list[Any], others: list[tuple[ir.Value, int]]
) -> dict[str, Any]:
    if parameter.map is not None:
        return _map_parameter(kernel, parameter.tensor, parameter.map)
    view = parameter.argument
    alignments = [_alignment(store, view) for store in found]
    alignments += [bytes_ for to, bytes_ in others if to == view]
    return {
        "kind": "pointer",
        "tensor": parameter.tensor,
        "alignment_bytes": max(alignments, default=0) or UNIT_BYTES,
    }


def _access(op: Any) -> tuple[ir.Value, int]:
    """Which argument an op reads or writes without an epilogue, and how many bytes at once."""
    if isinstance(op, WriteCodesOp):
        return argument_of(op.view), ir.VectorType(op.codes.type).shape[0]
    if isinstance(op, WriteScalesOp):
        return argument_of(op.scales), ir.VectorType(op.codes.type).shape[0]
    if isinstance(op, WriteGroupOp):
        return argument_of(op.view), SUM_BYTES
    if isinstance(op, WriteWordsOp):
        return argument_of(op.view), bytes_of_words(op.words.type)
    return op.offsets, OFFSET_BYTES


def _blockwise(kernel: KernelOp) -> dict[str, Any]:
    """The forms of the scales of 128 elements of K, where operands have some."""
    for op in walk(kernel, BLOCKWISE_MMAS)[:1]:
        forms = [op.a_form.value, op.b_form.value]
        if is_swapped(kernel):
            forms.reverse()
        return {"blockwise": dict(zip("ab", forms, strict=True))}
    return {}


def _terms(kernel: KernelOp) -> dict[str, Any]:
    """How much of K MMAs sum, where threads split f32 tiles into terms."""
    if not walk(kernel, TermsOp):
        return {}
    return {"terms": {"depth": _tile(kernel)[1]}}


def _blockwise_scales(kernel: KernelOp) -> list[ir.Value]:
    """The arguments that are scales which threads read from their views."""
    both = [each for op in walk(kernel, BLOCKWISE_MMAS) for each in (op.a_scales, op.b_scales)]
    return [argument_of(each) for each in both if isinstance(each.type, ir.MemRefType)]


def _alignment(store: Any, view: ir.Value) -> int:
    """Bytes that the address of `view` must be a multiple of for this store, 0 if it has none."""
    reads = [each for each in walk(store, ElementOp) if argument_of(each.source) == view]
    writes = isinstance(store, WriteRowOp) and argument_of(store.view) == view
    if not reads and not writes:
        return 0
    element = element_bytes(ir.MemRefType(view.type).element_type)
    if reads and all(
        read.axes.value in ("", "m") or transposed_of(read.source) is not None for read in reads
    ):
        return element
    if isinstance(store, ApplyEpilogueOp):
        return alignment_bytes(store, view)
    return store.width.value * element


def _map_parameter(kernel: KernelOp, tensor: str, op: TensorMapOp) -> dict[str, Any]:
    type_ = op.map.type
    return {
        "kind": "tensor_map",
        "tensor": tensor,
        "dtype": _map_type(type_.element),
        "dims": map_dims(kernel, op),
        "strides_bytes": map_strides(type_.strides),
        "box": box_sizes(type_.box),
        "element_strides": [1] * len(type_.box),
        "interleave": "none",
        "swizzle": type_.swizzle,
        "l2_promotion": promotion(kernel, tensor, op),
        "oob_fill": "zero",
    }


def _map_type(element: ir.Type) -> str:
    """The type of a map's elements; of packed ones that which gives them gaps."""
    if not is_padded(element):
        return _name(stored_dtype(str(element)))
    return next(name for name, bits in PADDED_TYPES.items() if bits == bits_of(element))
