"""The invariants on which passes and the lowering rely, checked between passes."""
