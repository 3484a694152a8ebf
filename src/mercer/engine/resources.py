"""Resources: what work may take of a machine, and its random numbers."""

import numbers
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .arrays import TravelsAsNumPy
from .memory import budget
from .threads import n_threads


@dataclass(frozen=True)
class Resources(TravelsAsNumPy):
    """Memory, threads, progress and random numbers, as KernelMap's arguments name them."""

    memory_limit: int | str | None = None
    n_jobs: int | None = None
    verbose: bool = False
    seed: int | None = None  # None: a fixed one, where the choice does not matter

    @classmethod
    def of(cls, *owners: Any) -> "Resources":
        """Those that the first of some estimators gives; refused where they make no sense."""

        def given(name: str) -> Any:
            values = (getattr(owner, name, None) for owner in owners)
            return next((value for value in values if value is not None), None)

        limit, n_jobs = given("memory_limit"), given("n_jobs")
        if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
            raise ValueError(
                f"n_jobs must be a number of threads (-1: all) or None, got {n_jobs!r}."
            )
        if limit is not None:
            budget(limit)
        return cls(limit, None if n_jobs is None else int(n_jobs), bool(given("verbose")))

    def limit(self, X: Any = None) -> int:
        """Bytes, where X lives."""
        return budget(self.memory_limit, X)

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(0 if self.seed is None else self.seed)

    @property
    def threads(self) -> int:
        """For tiles: what BLAS would use, or n_jobs by joblib's rules."""
        return n_threads(self.n_jobs)


_DEFAULT = Resources()
_current: ContextVar[Resources] = ContextVar("resources", default=_DEFAULT)


def current() -> Resources:
    """Those of the fit or prediction that is going on: threads and progress are not passed on."""
    return _current.get()


@contextmanager
def using(resources: Resources | None = None, **changes: Any) -> Iterator[None]:
    """A block that works with these resources; without any, with the current ones, changed."""
    token = _current.set(replace(current() if resources is None else resources, **changes))
    try:
        yield
    finally:
        _current.reset(token)
