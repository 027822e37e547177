"""Operands of a call: their sizes, types, strides and scales, and which are copied."""
