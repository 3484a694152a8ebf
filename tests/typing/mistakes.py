"""Mistakes that a strict checker must see, and see nothing else: `make lint` checks this file.

Each mistake is ignored with its kind, and an ignore that ignores nothing is an error itself.
"""

from mercer import RBF, KernelMap, KernelRidge, Polynomial

RBF(gamma="scael")  # type: ignore[arg-type]
RBF(gamma=None)  # type: ignore[arg-type]
Polynomial(degree="two")  # type: ignore[arg-type]
x: str = RBF().is_psd  # type: ignore[assignment]
KernelMap(basis="cholseky")  # type: ignore[arg-type]

# And these are right.
KernelMap(RBF(), basis="eigen")
value, std = KernelRidge().fit([[1.0]], [1.0]).predict([[1.0]], return_std=True)
RBF(gamma=0.1)
RBF(gamma="scale")
