"""The launch, its roles, tiles and marks."""
