"""How long schedules take: the cost model."""
