"""Planted faults: a text that stands once in the sources, and what takes its place.

They are addressed by their text, so that a file may move. `tests` is where they should be found:
what `run.py` runs of the default suite, in this order, until a test fails.
"""

from __future__ import annotations

from asm_faults import ASMS
from bundle_faults import BUNDLES
from choice_faults import CHOICE, EXCHANGES, FIRST_WAVES, PARTS_OF_RESIDUALS, READ_AHEAD, REMEMBERED
from cluster_faults import CLUSTERS
from collective_faults import COLLECTIVES
from coverage_faults import LEFT_OUT, WHOLE
from depth_faults import DEPTHS
from emulator_faults import EMULATOR
from exit_faults import EXITS
from form_faults import FORMS
from function_faults import FUNCTIONS
from gpu_faults import NAMES
from graph_faults import GRAPHS, JOINED, RACES, RECIPES
from group_faults import GROUPS, LEVEL, OF_ANY_ROWS
from hidden_faults import HIDDEN, LONE_HALVES, PLACES_OF_RANKS
from input_faults import INPUTS
from judge_faults import JUDGES
from keeping_faults import KEEPING
from lane_faults import LANES
from launch_faults import ADDRESSES, LAUNCHES
from lowering_faults import (
    LEFT_SLOTS,
    LOWERING,
    OWN_SLOTS,
    ROTATIONS,
    SHARED_LANES,
    STORED_APART,
)
from meeting_faults import MEETINGS
from named_faults import NAMED
from order_faults import ORDERS
from partial_faults import PARTS
from pass_faults import EXCHANGED, LAYOUTS_AND_FRONT_END, PASSES
from precision_faults import ELSEWHERE, PRECISION, SETTINGS, WEIGHTS
from release_faults import RELEASES, SLOTS
from room_faults import BESIDE_SUMS, IN_ITS_PLACE, ROOM
from row_faults import BANDS, FIRST_ROWS, ONE_NUMBER, ROWS
from scale_faults import BLOCKWISE, QUANTISED
from shift_faults import SHIFTS
from shipped_faults import SHIPPED
from silicon_faults import SILICON
from split_faults import SPLIT_TILES
from sum_faults import SUMS
from thread_faults import STARTS, THREADS
from told_faults import TOLD
from turned_faults import TURNED
from twin_faults import TWINS
from undefined_faults import UNDEFINED
from view_faults import VIEWS, WIDER

FAULTS = [
    *LAYOUTS_AND_FRONT_END,
    *PASSES,
    *LOWERING,
    *EMULATOR,
    *QUANTISED,
    *GROUPS,
    *EXCHANGED,
    *WEIGHTS,
    *ROWS,
    *READ_AHEAD,
    *CHOICE,
    *PRECISION,
    *BLOCKWISE,
    *GRAPHS,
    *TURNED,
    *THREADS,
    *ORDERS,
    *SPLIT_TILES,
    *LAUNCHES,
    *LANES,
    *RELEASES,
    *ASMS,
    *MEETINGS,
    *BANDS,
    *INPUTS,
    *UNDEFINED,
    *COLLECTIVES,
    *RECIPES,
    *SILICON,
    *CLUSTERS,
    *OF_ANY_ROWS,
    *STARTS,
    *SUMS,
    *BUNDLES,
    *SHIFTS,
    *LEVEL,
    *NAMES,
    *STORED_APART,
    *FIRST_WAVES,
    *EXCHANGES,
    *EXITS,
    *DEPTHS,
    *LEFT_OUT,
    *SHIPPED,
    *KEEPING,
    *FUNCTIONS,
    *WHOLE,
    *NAMED,
    *PARTS,
    *SLOTS,
    *ADDRESSES,
    *FORMS,
    *OWN_SLOTS,
    *ROOM,
    *IN_ITS_PLACE,
    *TWINS,
    *JOINED,
    *TOLD,
    *SHARED_LANES,
    *JUDGES,
    *LEFT_SLOTS,
    *FIRST_ROWS,
    *RACES,
    *HIDDEN,
    *REMEMBERED,
    *ONE_NUMBER,
    *VIEWS,
    *PARTS_OF_RESIDUALS,
    *ROTATIONS,
    *BESIDE_SUMS,
    *SETTINGS,
    *PLACES_OF_RANKS,
    *LONE_HALVES,
    *WIDER,
    *ELSEWHERE,
]
