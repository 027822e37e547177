"""Which tile, matrix and group of rows a CTA computes."""
