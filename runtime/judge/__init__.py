"""Expected results, and the error bound of each element."""
