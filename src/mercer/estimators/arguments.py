"""Arguments of scikit-learn's kernel methods that are written differently here.

There kernel parameters are copied onto every estimator; here they belong to the kernel. A call
with the old spelling is answered with the new one.
"""

from functools import wraps

from ..kernels import as_kernel

OF_THE_KERNEL = ("gamma", "degree", "coef0", "kernel_params")


def shows_new_spelling(**spellings):
    """Decorate __init__: TypeErrors for scikit-learn's arguments show what to write.

    `spellings` says what replaces arguments other than the kernel's own.
    """

    def decorate(init):
        @wraps(init)  # scikit-learn reads the signature through it
        def wrapped(self, *args, **kwargs):
            name = type(self).__name__
            of_kernel = {k: kwargs[k] for k in OF_THE_KERNEL if k in kwargs}
            if of_kernel:
                kernel = kwargs.get("kernel", args[1] if len(args) > 1 else "rbf")
                raise TypeError(
                    f"{name} has no argument {', '.join(of_kernel)}: parameters of a kernel belong "
                    f"to the kernel. Write {name}(kernel={_spelled(kernel, of_kernel)})."
                )
            for old in spellings.keys() & kwargs.keys():
                raise TypeError(f"{name} has no argument {old}: {spellings[old]}.")
            init(self, *args, **kwargs)

        return wrapped

    return decorate


def _spelled(kernel, given):
    """The kernel object for a name and scikit-learn's loose parameters, as text."""
    if not isinstance(kernel, str):
        return f"{kernel!r}, with its own parameters"
    kernel = as_kernel(kernel)
    given = {**given, **(given.get("kernel_params") or {})}
    parameters = {
        name: given[name] for name in kernel.get_params(deep=False) if given.get(name) is not None
    }
    listed = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    return f"{type(kernel).__name__}({listed})"
