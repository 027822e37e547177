"""The constraints on a schedule."""
