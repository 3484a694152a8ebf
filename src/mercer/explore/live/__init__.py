"""The live explorer: a kernel under a slider, and its feature space while it moves."""

from .explorer import Explorer, explore

__all__ = ["Explorer", "explore"]
