"""The barriers of a planned kernel: their counts, their phases, and the ends of a kernel."""
