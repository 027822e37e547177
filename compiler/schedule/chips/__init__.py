"""Figures of chips and boards that rules and estimates take, each with its source."""
