"""Where sums go: pieces, epilogues, and what comes ahead of them."""
