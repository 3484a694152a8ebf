"""Arrays, tiles, products, threads and memory. The engine knows no kernel by name."""
