"""The kinds of arrays that tests run on, and models seen from NumPy wherever they live.

A numeric test is written once, in NumPy, with the fixture `there` around what it tests:
``there(KernelPCA(3)).fit(X).transform(Z)``. Arrays travel to the backend on the way in; what comes
out must be the backend's, on the same device, and is brought back. So the test's oracle stays
NumPy, and the same test runs on NumPy, torch, array-api-strict, and on a GPU with
``MERCER_TEST_DEVICE=cuda`` (torch and CuPy).
"""

import os
from functools import wraps

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from mercer import Kernel
from mercer.engine.arrays import as_numpy, is_array, same_kind

DEVICE = os.environ.get("MERCER_TEST_DEVICE", "cpu")


def _torch():
    pytest.importorskip("torch", reason="torch is not installed: make torch")
    from array_api_compat import torch

    torch.set_default_device(DEVICE)  # arrays are made there
    # Arrays of tests are small: idle threads that spin would take the cores of other tests.
    torch.set_num_threads(1)
    return torch


def _cupy():
    pytest.importorskip("cupy", reason="CuPy is not installed")
    from array_api_compat import cupy

    return cupy


def _strict():
    return pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")


ON_CPU = {"numpy": lambda: np, "torch": _torch, "array_api_strict": _strict}
BACKENDS = ON_CPU if DEVICE == "cpu" else {"torch": _torch, "cupy": _cupy}


class Backend:
    """An array namespace to send arrays to, and to see things from."""

    def __init__(self, xp):
        self.xp = xp
        self.example = xp.zeros(1)

    def __call__(self, subject):
        """An estimator, kernel, function or class, with its arrays on the backend."""
        return There(subject, self)

    def array(self, values):
        """A NumPy array of numbers as one of the backend; anything else as it is."""
        if isinstance(values, There):
            return values._subject
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
            # A copy: torch takes no reversed strides, and no memory that it must not write to.
            return values if self.xp is np else self.xp.asarray(np.array(values))
        return values

    def seen(self, value, subject, owner):
        """What came back, as a person with NumPy sees it."""
        if value is subject:
            return owner
        if isinstance(value, tuple):
            return tuple(self.seen(item, subject, owner) for item in value)
        if isinstance(value, list):  # of functions; what methods keep of their steps is NumPy's
            return [self.seen(item, None, owner) for item in value]
        if is_array(value):
            numbers = np.ndarray is not type(value) or value.dtype.kind in "fiu"
            if isinstance(subject, (BaseEstimator, Kernel)) and numbers:
                assert same_kind(value, self.example), f"{type(value)} of {type(subject).__name__}"
            return as_numpy(value)
        if type(value).__module__.startswith("mercer.") and not isinstance(value, Kernel):
            return There(value, self)
        return value


class There:
    """Something that lives on a backend."""

    def __init__(self, subject, backend):
        self._subject, self._backend = subject, backend

    def __call__(self, *args, **kwargs):
        send = self._backend.array
        result = self._subject(*map(send, args), **{k: send(v) for k, v in kwargs.items()})
        return self._backend.seen(result, self._subject, self)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value, subject = getattr(self._subject, name), self._subject
        if not callable(value) or isinstance(value, Kernel) or hasattr(value, "fit"):
            return self._backend.seen(value, subject, self)

        @wraps(value)
        def method(*args, **kwargs):
            send = self._backend.array
            result = value(*map(send, args), **{k: send(v) for k, v in kwargs.items()})
            return self._backend.seen(result, subject, self)

        return method

    def __add__(self, other):
        return There(self._subject + self._backend.array(other), self._backend)

    def __sub__(self, other):
        return There(self._subject - self._backend.array(other), self._backend)

    def __rmul__(self, scale):
        return There(scale * self._subject, self._backend)
