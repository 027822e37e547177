"""`tilewright explain roofline`: what kernels compute and move, beside the ceilings of the chip."""
