"""Data races by happens-before, not by luck of the schedule (PTX ISA §8, memory consistency model).

    clock      what an agent knows of the accesses of others: vector clocks
    shadow     who touched each byte last
    tracker    the events of a launch that order accesses

An access is refused when a conflicting one is not ordered before it by program order, barriers,
mbarriers, commits, waits, fences, or release and acquire patterns.
"""

from .tracker import Races

__all__ = ["Races"]
