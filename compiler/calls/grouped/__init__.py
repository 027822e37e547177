"""`grouped_mm` and `scaled_grouped_mm`."""
