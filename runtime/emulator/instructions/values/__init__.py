"""Registers from registers, lane by lane: arithmetic, logic, comparisons, conversions, moves."""
