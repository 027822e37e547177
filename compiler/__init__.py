"""Spec, pipeline, back end and bundle writer: from a matmul to a kernel."""

from .first_use import matmul
from .torch_module import compile_module

__all__ = ["compile_module", "matmul"]
