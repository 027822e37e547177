"""Block-scaled types on the host: numbers to codes and scales and back, and where scales lie."""
