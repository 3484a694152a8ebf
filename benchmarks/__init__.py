"""Side by side with peers: `make bench` prints the table (BENCH_ARGS=--quick: a short one)."""
