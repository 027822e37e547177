"""Grids of texts, and plots with logarithmic axes, as SVG."""
