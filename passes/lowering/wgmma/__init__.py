"""Products by wgmma, with accumulators in registers of warpgroups."""
