"""From accumulators to results: what a thread reads, computes and stores."""
