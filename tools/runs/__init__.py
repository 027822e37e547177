"""Inputs, references and the report of `tilewright run`."""
