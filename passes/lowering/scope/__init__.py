"""What every pattern knows: the kernel, the place of the CTA, positions in rings."""
