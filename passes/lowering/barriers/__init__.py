"""The pass `pipes-to-barriers`: pipes as waits and arrivals on mbarriers."""
