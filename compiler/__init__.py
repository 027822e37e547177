"""Spec, pipeline, back end and bundle writer: from a matmul to a kernel."""

from .first_use import matmul

__all__ = ["matmul"]
