"""Solvers of (K + alpha I) a = t and its primal form."""
