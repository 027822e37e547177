"""`weight_only_mm`."""
