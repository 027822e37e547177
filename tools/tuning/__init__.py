"""Candidates, results and ranking of `tilewright tune`."""
