"""Resources: what work may take of a machine, and its random numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .memory import budget


@dataclass(frozen=True)
class Resources:
    """Memory, threads, progress and random numbers, as KernelMap's arguments name them."""

    memory_limit: int | str | None = None
    n_jobs: int | None = None
    verbose: bool = False
    seed: int | None = None  # None: a fixed one, where the choice does not matter

    def limit(self, X: Any = None) -> int:
        """Bytes, where X lives."""
        return budget(self.memory_limit, X)

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(0 if self.seed is None else self.seed)
