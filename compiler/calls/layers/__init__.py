"""Linear layers of torch."""
