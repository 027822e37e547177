"""What judges a launch: races, proxies, boxes, early uses; the machine runs without."""
