"""Array namespaces, devices and dtypes: the only file that knows torch or cupy exist.

Everything else is written against the namespace ``xp`` of its input. NumPy stays on the short
path (no import of any other backend), and operations that the array API leaves out (triangular
solves, in-place functions, scattered writes, free memory) are found here under one name each.
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeGuard

import numpy as np
import scipy.linalg
import scipy.sparse
from array_api_compat import array_namespace, is_cupy_array, is_torch_array
from array_api_compat import device as device

from .host_memory import free_host_memory
from .threads import one_blas_thread


class Array(Protocol):
    """An array as NumPy, torch, CuPy and other libraries of the array API have it."""

    @property
    def shape(self) -> Any: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def device(self) -> Any: ...
    @property
    def T(self) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __array__(self) -> np.ndarray: ...
    def __float__(self) -> float: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __abs__(self) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...


def is_numpy(x: Any) -> TypeGuard[np.ndarray]:
    return isinstance(x, (np.ndarray, np.generic))


def is_array(x: Any) -> bool:
    """True for arrays of any backend, without importing one to find out."""
    known = is_numpy(x) or hasattr(x, "__array_namespace__")
    return known or is_torch_array(x) or is_cupy_array(x)


def is_matrix(x: Array) -> bool:
    """Whether x is a dense array of numbers in two dimensions."""
    return is_array(x) and x.ndim == 2 and x.dtype != object


def is_symbolic(x: Array) -> bool:
    """Whether x is a value of a graph (export/onnx): then nothing can be checked on it yet."""
    return bool(getattr(x, "is_symbolic", False))


def namespace(*arrays: Any) -> Any:
    """The array namespace of dense arrays; sparse matrices count as NumPy."""
    dense = [a for a in arrays if a is not None and not scipy.sparse.issparse(a)]
    if all(is_numpy(a) for a in dense):
        return np
    return array_namespace(*dense)


def is_cpu(x: Array) -> bool:
    """NumPy, sparse and objects live on the CPU; other arrays say where they are."""
    if not is_array(x) or is_numpy(x):
        return True
    return str(device(x)).startswith(("cpu", "CPU"))


def same_kind(x: Array, reference: Array) -> bool:
    """Whether two arrays share namespace and device."""
    if is_array(x) != is_array(reference):
        return False
    if not is_array(x):
        return True
    return namespace(x) is namespace(reference) and (
        is_numpy(x) or str(device(x)) == str(device(reference))
    )


def as_numpy(x: Any) -> np.ndarray:
    """A NumPy copy (or view) of an array of any backend."""
    if is_numpy(x):
        return x
    if is_torch_array(x):
        x = x.detach().cpu().numpy()
    elif is_cupy_array(x):
        x = x.get()
    elif is_array(x) and not is_cpu(x):
        x = x.to_device(namespace(x).__array_namespace_info__().default_device())
    return np.asarray(x)


def as_host(x: Any) -> Any:
    """An array of any backend as NumPy's, and what is not an array as it is."""
    return as_numpy(x) if is_array(x) else x


def on_device_of(x: Any, reference: Array, dtype: Any = None) -> Any:
    """x as an array of the kind, device and dtype of the reference, unless a dtype is given (float:
    double precision). Points that are not arrays count as NumPy's."""
    xp = namespace(reference) if is_array(reference) else np
    if dtype is None:
        dtype = reference.dtype
    elif dtype is float:
        dtype = xp.float64
    if xp is np:
        return np.asarray(as_host(x), dtype=dtype)
    if is_array(x) and not is_numpy(x):
        return xp.asarray(x, dtype=dtype, device=device(reference))
    # A copy: torch warns of memory that it must not write to, such as broadcast or frozen arrays.
    return xp.asarray(np.array(x), dtype=dtype, device=device(reference))


def itemsize(x: Array) -> int:
    """Bytes of one number of an array, 4 in single precision; of objects, those of the doubles that
    they come to. (Strict backends' dtypes do not say.)"""
    return 4 if "float32" in str(getattr(x, "dtype", "")) else 8


def eps_of(x: Array) -> float:
    """The unit of rounding of such numbers."""
    return float(np.finfo(f"f{itemsize(x)}").eps)


def to_torch(X: Array, where: Any) -> Any:
    """A NumPy array as a torch tensor on a device, through page-locked memory."""
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(X))
    if str(where).startswith("cuda"):
        return tensor.pin_memory().to(where, non_blocking=True)
    return tensor.to(where, copy=True)


def _to_host(value: Any) -> Any:
    """Arrays on a device as NumPy arrays, inside lists, tuples and dicts too; else as given."""
    if is_array(value):
        return value if is_cpu(value) else as_numpy(value)
    if isinstance(value, dict):
        return {name: _to_host(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_to_host(item) for item in value)
    return value


class TravelsAsNumPy:
    """State of a fit: files of `save` may hold it. Files and pickles of what lives on a device hold
    NumPy arrays, and so load where there is none."""

    def __getstate__(self) -> Any:
        return _to_host(super().__getstate__())


def evenly(n: int, most: int) -> np.ndarray:
    """Positions among n, evenly spaced from the first to the last: all, or `most` of them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def rows_of(X: Array, a: int, b: int) -> Any:
    """Rows a to b of points of any kind (the ellipsis is what strict backends ask for)."""
    return X[a:b] if scipy.sparse.issparse(X) else X[a:b, ...]


def _writes_in_place(x: Any) -> bool:
    return is_numpy(x) or is_torch_array(x) or is_cupy_array(x)


def in_place(function: Callable[..., Any], x: Array) -> Any:
    """function(x), written over x where the backend can."""
    return function(x, out=x) if _writes_in_place(x) else function(x)


def put(target: Array, i: Array, j: Any, values: Array) -> Any:
    """target[i, j] = values for index vectors i (perhaps on the host) and j, or a slice j; the
    array API has no scattered write."""
    if _writes_in_place(target):
        i = on_device_of(i, target, dtype=namespace(target).int64)
        target[i, j] = values
        return target
    changed = np.array(as_numpy(target))
    changed[as_numpy(i), as_host(j)] = as_numpy(values)
    return namespace(target).asarray(changed, device=device(target))


def row_norms(x: Any, xp: Any) -> Any:
    """Squared Euclidean norms of the rows."""
    if xp is np:
        return np.einsum("ij,ij->i", x, x)
    return xp.sum(x * x, axis=1)


def positive_part(x: Array) -> Any:
    """x where it is positive, else zero: what rounding has made negative counts as zero."""
    xp = namespace(x)
    return xp.where(x > 0, x, xp.zeros_like(x))


# --- linear algebra -------------------------------------------------------------------------

# Rows of a block and columns of its parts, and rows up to which LAPACK factors a matrix as a whole.
_BLOCK, _WIDE, _WHOLE = 512, 4096, 8192


def cholesky(K: Any, *, in_place: bool = False, clean: bool | None = None) -> Any:
    """The lower Cholesky factor, or None where K is not positive definite to rounding; `in_place`:
    over K, for NumPy, whose upper triangle stays as it was, unless `clean` asks for zeros."""
    if is_numpy(K):
        clean = not in_place if clean is None else clean
        return _cholesky_in_place(K if in_place else np.array(K, order="C"), clean=clean)
    if is_torch_array(K):
        import torch

        C, info = torch.linalg.cholesky_ex(K)
        return C if int(info) == 0 else None
    xp = namespace(K)
    try:
        C = xp.linalg.cholesky(K)
    except Exception as error:  # every backend names its own LinAlgError
        if "LinAlg" not in type(error).__name__:
            raise
        return None
    return C if bool(xp.all(xp.isfinite(xp.linalg.diagonal(C)))) else None


def _cholesky_in_place(
    K: np.ndarray, *, clean: bool = False, whole: int = _WHOLE, block: int = _BLOCK
) -> np.ndarray | None:
    """C with C C' = K, in the memory of K; None where K is not positive definite to rounding.

    Above the diagonal K stays as it was; with `clean` there are zeros. SciPy's OpenBLAS ends the
    process when it factors more than 16 000 rows with several threads: blocks are what it can do.
    """
    C = K.T  # K is symmetric; columns are contiguous for LAPACK
    n = len(C)
    potrf = scipy.linalg.lapack.get_lapack_funcs("potrf", (C,))
    if n <= whole:
        with one_blas_thread(if_small=n):
            C, info = potrf(C, lower=True, clean=clean, overwrite_a=True)
        return C if info == 0 else None
    # C' takes the place of K, a block of rows at a time. What is known already is subtracted by
    # products that are as large as they can be, and write each row once.
    for a in range(0, n, block):
        b = min(a + block, n)
        known, columns = K[:a, a:b].T, [slice(i, i + _WIDE) for i in range(b, n, _WIDE)]
        if a:
            K[a:b, a:b] -= np.triu(known @ K[:a, a:b])
            for some in columns:
                K[a:b, some] -= known @ K[:a, some]
        C[a:b, a:b], info = potrf(C[a:b, a:b], lower=True, clean=False)
        if info != 0:
            return None
        for some in columns:
            K[a:b, some] = solve_triangular(C[a:b, a:b], K[a:b, some])
    return lower_triangle(C) if clean else C


def lower_triangle(C: np.ndarray) -> np.ndarray:
    """C with zeros above the diagonal, in place, a part that fits the cache at a time."""
    for a in range(0, len(C), 128):
        b = min(a + 128, len(C))
        C[a:b, a:b] = np.tril(C[a:b, a:b])
        C[a:b, b:] = 0
    return C


def gram(A: Any, B: Any = None) -> Any:
    """A'A, one triangle computed and mirrored; or A'B."""
    if not is_numpy(A) or not A.size or (B is not None and B.ndim != 2):
        return A.T @ (A if B is None else B)
    # SciPy's BLAS, as the triangular solves that come before and after: two BLAS libraries in turn
    # leave each other's threads spinning on the cores, which doubled the time of a pass over rows.
    if B is not None:
        return scipy.linalg.blas.get_blas_funcs("gemm", (A, B))(1.0, A.T, B)
    lower = scipy.linalg.blas.get_blas_funcs("syrk", (A,))(1.0, A.T, lower=1)
    full = lower.T
    for a in range(0, len(full), 128):  # in place, a part that fits the cache at a time
        b = min(a + 128, len(full))
        full[b:, a:b] = full[a:b, b:].T
        full[a:b, a:b] = np.triu(full[a:b, a:b]) + np.triu(full[a:b, a:b], 1).T
    return full


def solve_triangular(C: Any, B: Any, *, transpose: Any = False) -> Any:
    """C^-1 B (or C^-T B) for a lower triangular C."""
    if is_numpy(C):
        return scipy.linalg.solve_triangular(
            C, B, lower=True, trans=1 if transpose else 0, check_finite=False
        )
    if B.ndim == 1:
        return solve_triangular(C, B[:, None], transpose=transpose)[:, 0]
    xp = namespace(C)
    A = xp.matrix_transpose(C) if transpose else C
    if is_torch_array(C):
        import torch

        return torch.linalg.solve_triangular(A, B, upper=transpose)
    if is_cupy_array(C):
        if C.shape[0] == 0:  # cuBLAS refuses what is empty
            return B + 0.0
        from cupyx.scipy.linalg import solve_triangular as cupy_solve

        return cupy_solve(C, B, lower=True, trans=1 if transpose else 0)
    return xp.linalg.solve(A, B)


def largest_power(A: Array, axis: int | None = None) -> Any:
    """The power of two just above the largest |entry|, or above that of each column (axis=0); 1 for
    zeros. Division by it is exact, and squares of what was divided neither vanish nor overflow."""
    xp = namespace(A)
    if 0 in A.shape:
        return 1.0 if axis is None else np.ones(A.shape[1 - axis])
    sizes = as_numpy(xp.max(xp.abs(A), axis=axis)).astype(np.float64)
    powers = np.ldexp(1.0, np.clip(np.frexp(sizes)[1], -1021, 1023))
    powers = np.where(sizes > 0, powers, 1.0)
    return float(powers) if axis is None else powers


def inverse_of_factor(C: Array) -> Any:
    """(C C')^-1 for a lower triangular C."""
    if is_numpy(C):
        potri = scipy.linalg.lapack.get_lapack_funcs("potri", (C,))
        lower, _ = potri(C, lower=True, overwrite_c=False)
        full = lower + lower.T  # zeros stand above the diagonal of C, and stay there
        np.fill_diagonal(full, lower.diagonal())
        return full.T  # symmetric, and rows are contiguous
    if is_torch_array(C):
        import torch

        return torch.cholesky_inverse(C)
    identity = on_device_of(np.eye(C.shape[0]), C)
    return solve_triangular(C, solve_triangular(C, identity), transpose=True)


def eigh(A: Array) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of a symmetric matrix, largest first."""
    if is_numpy(A):
        values, vectors = scipy.linalg.eigh(A, driver="evd", check_finite=False)
        return values[::-1], vectors[:, ::-1]
    xp = namespace(A)
    if is_torch_array(A) and not is_cpu(A) and A.dtype == xp.float32:
        # Its solver for small matrices stops at 1e-5: a map in its basis left the certificate.
        values, vectors = xp.linalg.eigh(xp.astype(A, xp.float64))
        values, vectors = xp.astype(values, xp.float32), xp.astype(vectors, xp.float32)
    else:
        values, vectors = xp.linalg.eigh(A)
    return xp.flip(values, axis=0), xp.flip(vectors, axis=1)


def cuda_stream(x: Any) -> Any:
    """(number of the device, address of its current stream) of an array on a CUDA device."""
    if is_torch_array(x) and x.is_cuda:
        import torch

        return x.device.index, torch.cuda.current_stream(x.device).cuda_stream
    if is_cupy_array(x):
        import cupy

        return x.device.id, cupy.cuda.get_current_stream().ptr
    return None


# --- memory ---------------------------------------------------------------------------------


def free_memory(x: Array | None = None) -> int:
    """Bytes that can be allocated where x lives."""
    if x is not None and is_torch_array(x) and not is_cpu(x):
        import torch

        free, _ = torch.cuda.mem_get_info(x.device)
        # One reading for both: memory_reserved and memory_allocated each sort all statistics.
        kept = torch.cuda.memory_stats_as_nested_dict(x.device)
        pool, used = (kept[f"{what}_bytes"]["all"]["current"] for what in ("reserved", "allocated"))
        return int(free + pool - used)
    if x is not None and is_cupy_array(x):
        import cupy

        return int(cupy.cuda.Device().mem_info[0] + cupy.get_default_memory_pool().free_bytes())
    return free_host_memory()
