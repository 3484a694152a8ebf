"""Looking at kernels: comparisons, pictures, the report page."""
