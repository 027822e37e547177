"""Which fences come between what the proxies of shared memory and tensor memory do."""
