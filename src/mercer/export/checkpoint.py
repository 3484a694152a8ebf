"""Checkpoint: what a fit has found so far, in files that outlive the process."""

import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from .model_files import ModelFileError, load, save

_ENDING = ".part"


class Checkpoint(MutableMapping[str, BaseEstimator]):
    """Keep the parts of a fit in a folder: a fit that was killed goes on from them.

    Each part is a file of :func:`mercer.save`, written whole or not at all, under a name made from
    the rows and the parameters: other data never find it.

    Parameters
    ----------
    folder : path
        Made when the first part is written. `clear` removes it.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> from mercer import KernelRegressor
    >>> from mercer.export.checkpoint import Checkpoint
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> parts = Checkpoint(os.path.join(tempfile.mkdtemp(), "parts"))
    >>> model = KernelRegressor(n_rounds=1).fit(X, X[:, 0], checkpoint=parts)
    >>> len(parts)
    1
    >>> parts.clear()
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def __getitem__(self, key: str) -> Any:
        try:
            return load(self._file(key))
        except (FileNotFoundError, ModelFileError) as error:  # damaged: found again
            raise KeyError(key) from error

    def __setitem__(self, key: str, part: BaseEstimator) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        save(part, self._file(key))

    def __delitem__(self, key: str) -> None:
        self._file(key).unlink()

    def __iter__(self) -> Iterator[str]:
        return (path.stem for path in sorted(self.folder.glob(f"*{_ENDING}")))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def clear(self) -> None:
        """Remove all parts, and the folder where it is then empty."""
        for key in list(self):
            del self[key]
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _file(self, key):
        return self.folder / f"{key}{_ENDING}"
