"""Spec, pipeline, back end and bundle writer: from a matmul to a kernel."""
