"""Side by side with peers: `make bench` prints the table, `make bench BENCH_ARGS=--quick` a short one."""
