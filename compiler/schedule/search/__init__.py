"""Candidates, what none of them beats, and the choice among them."""
