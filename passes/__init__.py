"""The passes by name: those of a schedule in pipeline order, and those of the lowering.

A pass stands in the file of its name, in one of these folders:

    linalg/      normalize, and how it finds the product in linalg
    tiling/      tiling, and how it makes a kernel's views, steps, stores and places
    schedule/    the passes of a schedule after tiling
    lowering/    the passes after a schedule, and their patterns, by what these are of
    expand/      expand-loops, one of these
    checks/      what passes take for granted of a kernel, checked between passes by
                 compiler/pipeline.py

The files beside the passes are

    base, build, clone, indices, whole        what every pass is written with
    tensor_maps, rings, ring_fills, cluster   what passes of a schedule change: boxes, slots, masks
    thread_rules, team, plan, places          who runs an op, and where everything lies
"""

from ..dialects.tables import Table
from .expand.loops import ExpandLoops
from .linalg.normalize import Normalize
from .lowering.barriers.pipes_to_barriers import PipesToBarriers
from .lowering.nvvm.lower_to_nvvm import LowerToNvvm
from .lowering.planning.assign_threads import AssignThreads
from .lowering.planning.plan_memory import PlanMemory
from .lowering.select_instructions import SelectInstructions
from .schedule.clustering import Clustering
from .schedule.copy_insertion import CopyInsertion
from .schedule.edge_boxes import EdgeBoxes
from .schedule.epilogue_staging import EpilogueStaging
from .schedule.instrument import Instrument
from .schedule.k_rotation import KRotation
from .schedule.level_groups import LevelGroups
from .schedule.persistence import Persistence
from .schedule.ping_pong import PingPong
from .schedule.pipelining import Pipelining
from .schedule.skip_zeros import SkipZeros
from .schedule.slot_reuse import SlotReuse
from .schedule.split_k import SplitK
from .schedule.swizzle_selection import SwizzleSelection
from .schedule.tma_insertion import TmaInsertion
from .schedule.warp_specialization import WarpSpecialization
from .tiling.tiling import Tiling

# Order matters: each pass takes what the one before it leaves (docs/passes/README.md).
PIPELINE = (
    Normalize,  # linalg on tensors → tile.matmul
    Tiling,  # → one CTA's program; every pass after it leaves a runnable kernel
    TmaInsertion,  # thread copies → TMA copies through pipes
    CopyInsertion,  # the same place in the order: copies by threads through pipes
    SwizzleSelection,  # after TMA: boxes widen with the swizzle
    SplitK,  # before pipelining, which cuts the loop over K in pieces
    EpilogueStaging,  # before pipelining, which takes what shared memory is left
    Clustering,  # before pipelining: a pair halves B's tiles, so more stages fit
    Pipelining,  # after the slots have their final size
    WarpSpecialization,  # after pipelining: it puts the loop back together for each role
    Persistence,  # after clustering: tiles go to clusters
    PingPong,  # after persistence: each of two consumers takes every other tile of the loop
    SlotReuse,  # after warp-specialization, whose load role goes on after its K steps
    KRotation,  # after warp-specialization, whose load role has one loop along K
    SkipZeros,  # after all that make MMAs others: pairs have no short MMAs
    LevelGroups,  # the same
    EdgeBoxes,  # after k-rotation: by the counter of the loop, not by the step that is loaded
    Instrument,  # last: what a kernel tells of is its agents as they are
)
# What every program goes through after its schedule, in this order; each can be stopped after.
LOWERING = (
    AssignThreads,  # first: memory and barriers depend on who fills and who reads
    PlanMemory,  # after threads: barriers count the arrivals of those who run what
    ExpandLoops,  # loops over tiles, staged stores → loops over pieces
    PipesToBarriers,  # after loops: what agents say to each other at their ends is all there
    SelectInstructions,  # tiles → instructions on descriptors and addresses
    LowerToNvvm,  # last: an op, a pattern; then upstream's passes
)
# Passes that the default pipeline leaves out: for few tiles and a long K, for many and a short K,
# for a residual of a CTA's one tile, for few rows, for a K that ends within a tile, for tiles
# that hang over A or B, for chips without TMA, for people who ask where time goes.
BY_REQUEST = (
    SplitK,
    PingPong,
    SlotReuse,
    KRotation,
    SkipZeros,
    LevelGroups,
    EdgeBoxes,
    CopyInsertion,
    Instrument,
)
PASSES = Table({pass_class.name: pass_class for pass_class in (*PIPELINE, *LOWERING)})
