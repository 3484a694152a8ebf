"""Kernels as ONNX graphs: their own code runs on tensors, which are written down as they go.

`value_tensor` is k(X, S) for rows X of the graph and fixed points S, `diagonal_tensor` k(x, x) as a
column, `feature_tensor` the kernel's own finite map. What depends on S alone is computed by the
kernel itself, before the graph is made.
"""


def value_tensor(kernel, X, S):
    return _written(kernel, "a graph", lambda: kernel.against(S)(X))


def diagonal_tensor(kernel, X):
    return _written(kernel, "a graph with k(x, x)", lambda: kernel.diagonal(X)[:, None])


def feature_tensor(kernel, X):
    return _written(kernel, "a finite feature map", lambda: kernel.features(X))


def _written(kernel, what, form):
    by_user = [part for part in kernel.parts() if part.runs_user_code or part.kind == "objects"]
    cause = None
    if not by_user:
        try:
            return form()
        except (AttributeError, TypeError) as error:
            cause = error
    named = type(by_user[-1] if by_user else kernel).__name__
    raise ValueError(
        f"{named} cannot be written as {what} of ONNX operators. The kernel: {kernel!r}. Kernels "
        "that can: those on vectors whose formulas are arithmetic, roots and exponentials (of "
        "Matern: nu 0.5, 1.5, 2.5 and all from 20 on), and not functions of Python."
    ) from cause
