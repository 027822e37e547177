"""The cost model: estimated times of schedules."""
