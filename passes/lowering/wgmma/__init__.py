"""Products by wgmma, with sums in the registers of warpgroups."""
