"""Sums of exponentials at scattered points: plain products for few terms, finufft for many.

Points on a GPU stay there where cufinufft is installed: only sums leave the device, and only
coefficients go there.

Points t have d columns, in units of the period; frequencies are k = -m..m in each column.

    sums:    F_k = sum_i v_i exp(-2 pi i k . t_i)
    values:  f_i = sum_k C_k exp(+2 pi i k . t_i), real for C_-k = conj(C_k)

v and f are real, so that two of them share one complex transform.
"""

import importlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .arrays import as_numpy, cuda_stream, is_cpu, is_numpy, namespace, on_device_of
from .resources import current

# Terms (points times frequencies) up to which plain products are as fast, and up to which they are
# bearable where finufft is not installed.
FEW_TERMS, MOST_TERMS = 1 << 18, 1 << 32
# Signs of the exponents: in sums (1), in values (2).
_SIGN = {1: -1, 2: 1}
# Complex numbers in one block of plain exponentials.
_BLOCK = 1 << 22
# The best accuracy that finufft is asked for.
FINEST = 1e-14
# Frequencies whose grid stays in the cache of a core: there points need not be sorted first.
_IN_CACHE = 1 << 14


def sums(t: Any, v: np.ndarray, m: tuple[int, ...], eps: float) -> np.ndarray:
    """F for each row of v, an array of shape (len(v), 2 m_1 + 1, ..., 2 m_d + 1) on the host."""
    shape = tuple(2 * k + 1 for k in m)
    sizes = _sizes(v)
    packed = np.zeros(((len(v) + 1) // 2, *v.shape[1:]), dtype=complex)
    scaled = v / sizes[:, None]
    packed.real, packed.imag[: len(v) // 2] = scaled[0::2], scaled[1::2]
    F = as_numpy(_transform(1, t, packed, shape, eps))
    flipped = np.conj(F[(slice(None), *[slice(None, None, -1)] * len(m))])
    both = np.stack([(F + flipped) / 2, (F - flipped) / 2j], axis=1)
    found: np.ndarray = both.reshape(-1, *shape)[: len(v)]
    found *= sizes.reshape(-1, *[1] * len(m))
    return found


def values(t: Any, C: np.ndarray, eps: float) -> Any:
    """f for each array of coefficients in C, of shape (len(C), number of points), where t is."""
    sizes = _sizes(C)
    C = C / sizes.reshape(-1, *[1] * (C.ndim - 1))
    odd = np.concatenate([C, np.zeros_like(C[:1])]) if len(C) % 2 else C
    packed = odd[0::2] + 1j * odd[1::2]
    f = _transform(2, t, packed, packed.shape[1:], eps)
    xp = namespace(f)
    both = xp.stack([xp.real(f), xp.imag(f)], axis=1)
    return xp.reshape(both, (-1, t.shape[0]))[: len(C), ...] * on_device_of(sizes, both)[:, None]


def _sizes(A: np.ndarray) -> np.ndarray:
    """Powers of two above the entries of every array. Two are packed into one of complex numbers,
    and the rounding of a large one would be an error of a small one."""
    largest = np.abs(A).reshape(len(A), -1).max(axis=1, initial=0.0)
    sizes: np.ndarray = np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1021, 1023))
    return sizes


def _transform(kind: int, t: Any, packed: np.ndarray, shape: tuple[int, ...], eps: float) -> Any:
    """Sums (kind 1) or values (kind 2) on a grid of this shape, by the way that suits."""
    if not is_numpy(t):
        return _on_device(kind, t, packed, shape, max(eps, FINEST))
    if not _plainly(t.shape[0] * math.prod(shape)):
        return _finufft(kind, t, packed, shape, max(eps, FINEST))
    if kind == 2:
        flat = packed.reshape(len(packed), -1)
        return np.concatenate([flat @ waves.T for _, waves in _waves(t, shape)], axis=1)
    parts = (np.conj(np.conj(packed[:, part]) @ waves) for part, waves in _waves(t, shape))
    return sum(parts, np.zeros((len(packed), math.prod(shape)))).reshape(len(packed), *shape)


def _plainly(terms: int) -> bool:
    """Whether plain products will do; where they must, and take too long, the way out is named."""
    if terms <= FEW_TERMS:
        return True
    try:
        import finufft  # noqa: F401
    except ImportError:
        if terms <= MOST_TERMS:
            return True
        raise ImportError(
            f"basis='fourier' adds up {terms:.2g} exponentials here, too many for plain products: "
            "pip install mercer[fourier] (finufft)."
        ) from None
    return False


def _finufft(
    kind: int, t: np.ndarray, packed: np.ndarray, shape: tuple[int, ...], eps: float
) -> np.ndarray:
    import finufft

    if not (np.isfinite(t).all() and np.isfinite(packed).all()):
        raise ValueError("points and values of a transform must be finite.")  # else it may crash
    columns = [np.ascontiguousarray(2 * math.pi * t[:, a]) for a in range(t.shape[1])]
    transform = getattr(finufft, f"nufft{t.shape[1]}d{kind}")
    packed = np.ascontiguousarray(packed)
    given = (packed, shape) if kind == 1 else (packed,)
    options = {"eps": eps, "isign": _SIGN[kind], "nthreads": current().threads}
    if len(columns) < 3 and math.prod(shape) <= _IN_CACHE:
        options["spread_sort"] = 0
    # A single transform comes back without its first axis.
    found = transform(*columns, *given, **options)
    return np.reshape(found, (len(packed), *(shape if kind == 1 else (-1,))))


# --- on a GPU -------------------------------------------------------------------------------------


def runs_on(X: Any) -> bool:
    """Whether X is on a CUDA device, and cufinufft is there to transform it."""
    if is_cpu(X) or cuda_stream(X) is None:
        return False
    try:
        importlib.import_module("cufinufft")
    except ImportError:  # not installed, or without the libraries of CUDA that it was built for
        return False
    return True


def _on_device(kind: int, t: Any, packed: np.ndarray, shape: tuple[int, ...], eps: float) -> Any:
    cufinufft: Any = importlib.import_module("cufinufft")
    xp, d, (where, stream) = namespace(t), len(shape), cuda_stream(t)
    if not (bool(xp.all(xp.isfinite(t))) and np.isfinite(packed).all()):
        raise ValueError("points and values of a transform must be finite.")
    # In three columns a tile of double precision is more than the shared memory of some devices.
    options = {"gpu_method": 1} if d == 3 else {}
    options |= {"gpu_device_id": where, "gpu_stream": stream}
    plan = cufinufft.Plan(kind, shape, len(packed), eps, _SIGN[kind], "complex128", **options)
    plan.setpts(*[2 * math.pi * t[:, a] for a in range(d)])
    given = on_device_of(packed, t, xp.complex128)
    found = plan.execute(given)
    return xp.reshape(found, (len(packed), *(shape if kind == 1 else (-1,))))


def _waves(t: np.ndarray, shape: tuple[int, ...]) -> Iterator[tuple[slice, np.ndarray]]:
    """exp(2 pi i k . t) of some points at a time: (which, points x all frequencies)."""
    rows, m = max(1, _BLOCK // math.prod(shape)), tuple(n // 2 for n in shape)
    for part in (slice(a, a + rows) for a in range(0, t.shape[0], rows)):
        waves = np.ones((len(t[part]), 1), dtype=complex)
        for x, k in zip(t[part].T, m):
            table = np.exp(2j * math.pi * x[:, None] * np.arange(-k, k + 1))
            waves = (waves[:, :, None] * table[:, None, :]).reshape(len(table), -1)
        yield part, waves
