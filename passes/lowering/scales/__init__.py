"""Scales in f32 that threads multiply products by."""
