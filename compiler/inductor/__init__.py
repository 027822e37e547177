"""Matmuls in torch's compiled graphs, replaced with their epilogues by one kernel."""
