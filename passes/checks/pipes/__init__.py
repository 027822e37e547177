"""The protocol of pipes: who fills a ring, who empties it."""
