"""The `tile` dialect: what one CTA computes, with no barrier and no address.

    tile.matmul       c[M,N] = f(sum_k a[M,K] * b[N,K])        on whole tensors, or stacks of them
    tile.scaled_matmul  the same of operands with block scales; tile.scaled_mma and
                      tile.scaled_pair_mma multiply their tiles
    tile.blockwise_matmul  the same with scales in f32 of 128 elements of K; tile.blockwise_mma
                      multiplies their tiles
    tile.weight_matmul  the same of weights of 8 and 4 bits, by groups that share a scale, which
                      threads widen; tile.weight_mma multiplies their tiles, and where A and B are
                      exchanged tile.exchanged_weight_mma
    tile.kernel       the program of one CTA over views of global memory
    tile.cta_tile     (i, j): which M and N tile this CTA computes
    tile.for_each_tile  runs a body for every (i, j) that falls to this CTA
    tile.place        (i, j) of the tile that is this CTA's when a loop has come to a number; of
                      tile.tile_count or tile.stack_tiles M tiles, which a launch says,
                      tile.counted_place; of groups, one after the other, tile.group_place
    tile.accumulator  acc[M,N], undefined until the first mma
    tile.load         t[r,k] = view[i*R + r, j*K + k], zero outside the view
    tile.tensor_map   how TMA sees a view: dims, strides, box, swizzle
    tile.tma_load     t[r,k] = view[i*R + r, j*K + k] by TMA, zero outside the view
    tile.rotated_step the step along K that a CTA loads in its place: others begin with others
    tile.tma_multicast  the same, each of several CTAs loading a part for all of them
    tile.copy         t[r,k] = view[i*R + r, j*K + k] by the producer's threads, likewise
    tile.copy_together  such copies of a slot, whose bytes threads shift in registers
    tile.mma          acc[M,N] = (accumulate ? acc : 0) + a[M,K] * b[N,K]^T
    tile.view_mma     the same of elements that threads read from the views themselves; by
                      tile.lane_mma lanes share an element, whose parts tile.add_lanes adds up
    tile.clear_sums   acc[M,N] = 0; tile.finish_sums: no product is held back any more
    tile.sums_place   what a thread has of sums where each computes elements of its own, also
                      tile.has_sums and tile.sums_row
    tile.pair_mma     the same by two CTAs: each has its rows of a and acc and half of b
    tile.await_mma    waits until all but the `pending` newest mma of this agent are done
    tile.pair_rank    0 in the first CTA of a pair, 1 in the second
    tile.store        view[i*M + r, j*N + c] = f(acc[r,c]), dropped outside the view
    tile.staged_store view[i*M + r, j*N + c] = f(acc[r,c]) through shared memory
    tile.split_rank   which part of K this CTA sums: its place along z of those that share a tile
    tile.split_start  the step along K with which that part begins, where a launch says K
    tile.reduced_store  view[i*M + r, j*N + c] = f(sum of the cluster's acc[r,c], in rank order)
    tile.gathered_store  the same of the grid's parts of K, which meet in a tile.workspace
    tile.write_unit   buffer[row, column + c] = outputs[c] of tile.apply_epilogue, also
                      tile.write_matrices, and tile.tma_store, or tile.part_place and
                      tile.write_words, from there: what a staged store is once written out, by
                      tile.await_sums, tile.staging_buffer and tile.next_buffer
    tile.load_boxes   tile.tma_load with its barrier; tile.multicast_boxes likewise. tile.box_rows
                      says how many rows boxes have where a launch says it
    tile.edge_load    tile.tma_load of tiles that hang over the view, without most of the rows that
                      are not there; tile.edge_multicast likewise, and tile.edge_rows counts them
    tile.clear_unit   16 bytes of a slot's tile that no copy fills
    tile.batch        (batch, row): the matrix of a stack, and the M tile in it, of a place along M
    tile.matrix       the view, or tensor map, of one matrix of a stack
    tile.grouped_matmul  the same of groups of rows, each with a matrix of its own; tile.group says
                      which group a place along M is of, tile.group_rows takes its rows
    tile.element      inside f: the element of another operand beside the one computed
    tile.load_ahead   brings its tile to shared memory before f reads it by tile.staged_element, in
                      pieces: tile.load_piece and tile.await_piece
    tile.keep         inside f: the element of a further output; tile.kept: the whole of it
    tile.keep_groups  inside f: the same reduced over neighbours in a row
    tile.store_groups view[i*M + r, (j*N + c) / G] = reduce of f(acc[r,c]) over each G columns, by
                      tile.write_groups
    tile.quantize     inside f: an element of C over the scale of its block
    tile.store_quantized  view[i*M + r, j*N + c] = f(acc[r,c]) / scale, and the scales, by
                      tile.quantize_values, tile.write_codes and tile.write_scales
    tile.yield        ends the region that computes f on one element

Views are memrefs in global memory (space 1), logically [M,K], [N,K] and [M,N]; their strides say
which axis is contiguous. Views of stacks have one more dim before these. Indices count tiles.
"""

from ..tile_types import Tile
from . import (
    ahead,
    batches,
    blockwise,
    boxes,
    duals,
    edges,
    grouped_products,
    groups,
    marks,
    outputs,
    pieces,
    place,
    quantized,
    scales,
    short,
    staged_quantized,
    stores,
    sums,
    threads,
    weights,
)
from .loads import (
    CopyOp,
    LoadOp,
    RotatedStepOp,
    TensorMapOp,
    TmaGatherOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from .parts import (
    GatheredStoreOp,
    ReducedStoreOp,
    SplitRankOp,
    SplitStartOp,
)
from .program import (
    MMAS,
    STORES,
    WRITES,
    AccumulatorOp,
    AwaitMmaOp,
    CtaTileOp,
    ElementOp,
    ForEachTileOp,
    KernelOp,
    MatmulOp,
    MmaOp,
    PairMmaOp,
    PairRankOp,
    StagedStoreOp,
    StoreOp,
    YieldOp,
)

OTHERS = (
    ahead,
    batches,
    blockwise,
    boxes,
    duals,
    edges,
    grouped_products,
    groups,
    marks,
    outputs,
    pieces,
    place,
    quantized,
    scales,
    short,
    staged_quantized,
    stores,
    sums,
    threads,
    weights,
)
"""Files whose ops others import from there: each declares them, so that contexts have them all."""

__all__ = [
    "MMAS",
    "STORES",
    "WRITES",
    "AccumulatorOp",
    "AwaitMmaOp",
    "CopyOp",
    "CtaTileOp",
    "ElementOp",
    "ForEachTileOp",
    "GatheredStoreOp",
    "KernelOp",
    "LoadOp",
    "MatmulOp",
    "MmaOp",
    "PairMmaOp",
    "PairRankOp",
    "ReducedStoreOp",
    "RotatedStepOp",
    "SplitRankOp",
    "SplitStartOp",
    "StagedStoreOp",
    "StoreOp",
    "TensorMapOp",
    "Tile",
    "TmaGatherOp",
    "TmaLoadOp",
    "TmaMulticastOp",
    "YieldOp",
]
