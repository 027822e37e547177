"""Dialects, layout algebra and target limits: what every other package but `runtime` stands on."""
