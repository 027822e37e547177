"""What executes: memories, warps, CTAs and clusters, barriers, engines, the scheduler."""
