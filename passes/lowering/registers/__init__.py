"""Accumulators, fragments and vectors that threads hold."""
