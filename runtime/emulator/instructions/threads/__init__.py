"""Threads among each other: branches, barriers, fences, warps, launch control."""
