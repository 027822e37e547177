"""c[M,N] = a[M,K] · b[N,K]ᵀ, bf16 to f32, by pairs of CTAs: one warp loads through a ring of two
slots, one warp of the leader multiplies for both, four warps of each store what they load."""

from std.compile import compile_info
from max.gpu.host.compile import get_gpu_target
from max.gpu import barrier, block_idx, thread_idx, lane_id, warp_id
from max.gpu.primitives.cluster import block_rank_in_cluster, cluster_sync, elect_one_sync
from max.gpu.host.nvidia.tma import TensorMapSwizzle
from max.gpu.memory import external_memory, AddressSpace
from max.gpu.compute.arch.mma_nvidia_sm100 import *
from max.gpu.compute.arch.tcgen05 import *
from layout import Coord, Idx, Layout, LayoutTensor, LTToTTLayout, TileTensor
from layout.tensor_core_async import tile_layout_k_major
from layout.tma_async import SharedMemBarrier, TMATensorTile, PipelineState
from linalg.arch.sm100 import MmaOpSM100_SS
from std.utils.index import Index
from std.utils.static_tuple import StaticTuple

comptime BM = 128
comptime BN = 32
comptime BK = 64
comptime STAGES = 2
comptime T = DType.bfloat16
comptime SWIZZLE = TensorMapSwizzle.SWIZZLE_128B
comptime A_LAYOUT = tile_layout_k_major[T, BM, BK, swizzle_mode=SWIZZLE]()
comptime B_LAYOUT = tile_layout_k_major[T, BN, BK, swizzle_mode=SWIZZLE]()
comptime A_MAP = TMATensorTile[T, Coord(Idx[BM], Idx[BK])]
comptime B_MAP = TMATensorTile[T, Coord(Idx[BN], Idx[BK])]
comptime BYTES = Int32(2 * 2 * (BM * BK + BN * BK))


@__llvm_metadata(`nvvm.cluster_dim`=StaticTuple[Int32, 3](2, 1, 1))
@__llvm_arg_metadata(a_map, `nvvm.grid_constant`)
@__llvm_arg_metadata(b_map, `nvvm.grid_constant`)
def ring_pair(
    a_map: A_MAP,
    b_map: B_MAP,
    c: UnsafePointer[Float32, MutAnyOrigin],
    n: Int32,
    steps: Int32,
):
    var smem = external_memory[UInt8, address_space=AddressSpace.SHARED, alignment=1024]()
    var a_smem = smem.bitcast[Scalar[T]]()
    var b_smem = (smem + STAGES * BM * BK * 2).bitcast[Scalar[T]]()
    var bars = (smem + STAGES * (BM + BN) * BK * 2).bitcast[SharedMemBarrier]()
    var full = bars
    var empty = bars + STAGES
    var done = bars + 2 * STAGES
    var address = (bars + 2 * STAGES + 1).bitcast[UInt32]()
    var warp = warp_id()
    var elected = elect_one_sync()
    var leader = block_rank_in_cluster() % 2 == 0

    if warp == 0 and elected:
        a_map.prefetch_descriptor()
        b_map.prefetch_descriptor()
        comptime for s in range(STAGES):
            full[s].init()
            empty[s].init()
        done[0].init()
    cluster_sync()
    if warp == 0:
        tcgen05_alloc[2](address, 64)
    barrier()
    var tmem = address[0]

    if warp == 4 and elected:
        var state = PipelineState[STAGES](0, 1, 0)
        for i in range(Int(steps)):
            var s = Int(state.index())
            empty[s].wait(state.phase())
            if leader:
                full[s].expect_bytes(BYTES)
            var a_tile = LayoutTensor[T, A_LAYOUT, _, address_space=AddressSpace.SHARED, alignment=128](
                a_smem + s * BM * BK
            )
            var b_tile = LayoutTensor[T, B_LAYOUT, _, address_space=AddressSpace.SHARED, alignment=128](b_smem + s * BN * BK)
            a_map.async_multicast_load[2](a_tile, full[s], (i * BK, Int(block_idx.x) * BM), UInt16(1 << Int(block_rank_in_cluster())))
            b_map.async_multicast_load[2](b_tile, full[s], (i * BK, Int(block_idx.y) * BN * 2 + Int(block_rank_in_cluster()) * BN), UInt16(1 << Int(block_rank_in_cluster())))
            state.step()
        comptime for _ in range(STAGES):
            empty[Int(state.index())].wait(state.phase())
            state.step()
    elif warp == 5 and elected and leader:
        var op = MmaOpSM100_SS[
            DType.float32, T, T, Index(BM, BN, BK), Index(2 * BM, 2 * BN, 16),
            accum_type=DType.float32, cta_group=2, cluster_shape=Index(2, 1, 1),
            a_swizzle=SWIZZLE, b_swizzle=SWIZZLE, transpose_b=True,
        ]()
        var state = PipelineState[STAGES]()
        for i in range(Int(steps)):
            var s = Int(state.index())
            full[s].wait(state.phase())
            op.mma(
                TileTensor(a_smem + s * BM * BK, LTToTTLayout[A_LAYOUT]()),
                TileTensor(b_smem + s * BN * BK, LTToTTLayout[B_LAYOUT]()),
                tmem, init_c=(i == 0),
            )
            mma_arrive_multicast[2](empty + s, UInt16(3))
            state.step()
        mma_arrive_multicast[2](done, UInt16(3))
    elif warp < 4:
        done[0].wait(0)
        tcgen05_fence_after()
        var row = Int(block_idx.x) * BM + Int(thread_idx.x)
        comptime for part in range(2):
            var sums = tcgen05_ld[datapaths=32, bits=32, repeat=32, dtype=DType.float32, pack=False, width=32](
                tmem + UInt32(part * 32) | UInt32((warp * 32) << 16))
            tcgen05_load_wait()
            comptime for j in range(32):
                c[row * Int(n) + Int(block_idx.y) * 2 * BN + part * 32 + j] = sums[j]
        tcgen05_fence_before()
    barrier()
    cluster_sync()
    if warp == 0:
        tcgen05_release_allocation_lock[2]()
        tcgen05_dealloc[2](tmem, 64)


def main():
    comptime target = get_gpu_target["sm_100a"]()
    print(compile_info[ring_pair, target=target]())
