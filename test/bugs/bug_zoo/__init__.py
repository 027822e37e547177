"""Kernels of ours with one bug each, and how the emulator must call it."""

from . import (
    alternating,
    barriers,
    block_scales,
    by_hand,
    execution,
    hand_over,
    ordering,
    shared_memory,
    tensor_core,
)

BUGS = (
    *barriers.BUGS,
    *shared_memory.BUGS,
    *tensor_core.BUGS,
    *execution.BUGS,
    *by_hand.BUGS,
    *ordering.BUGS,
    *alternating.BUGS,
    *hand_over.BUGS,
    *block_scales.BUGS,
)
