"""Bundles: reading, and what a manifest may say."""
