"""Kernels as ONNX graphs: each kernel's class says its own form; here it is asked for.

``values(kernel, X, S)`` is k(X, S) for rows X of the graph and fixed points S; ``diagonal`` is
k(x, x) as a column; ``features`` the kernel's own finite map. What depends on S alone is computed
by the kernel itself, before the graph is made.
"""

from ... import kernels as _kernels
from ...kernels import Kernel
from ...kernels.capabilities import NoOnnxForm


def values(kernel, X, S):
    return _written(kernel.onnx_values, X, S)


def diagonal(kernel, X):
    return _written(kernel.onnx_diagonal, X)


def features(kernel, X):
    return _written(kernel.onnx_features, X)


def _written(form, *arguments):
    try:
        return form(*arguments)
    except NoOnnxForm as missing:
        raise ValueError(
            f"{missing} The kernel: {missing.kernel!r}. Kernels that can: "
            f"{', '.join(_with_form())} (of Matern: nu 0.5, 1.5 and 2.5)."
        ) from None


def _with_form():
    classes = [getattr(_kernels, name) for name in _kernels.__all__]
    classes = [c for c in classes if isinstance(c, type) and issubclass(c, Kernel)]
    return [c.__name__ for c in classes if c.onnx_values is not Kernel.onnx_values]
