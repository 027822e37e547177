"""Candidates, lower bounds of their times, and the choice."""
