"""Figures of chips and boards for rules and estimates, each with its source."""
