"""Cholesky over its own matrix, in blocks: a copy may not fit, and LAPACK may not cope.

Some builds of LAPACK end the process when they factor matrices of more than 15 000 rows with
several threads. Blocks of moderate size are what every build is tested with, and cost the same.
"""

import numpy as np
import scipy.linalg

# Rows of a block, and rows up to which LAPACK takes the matrix as a whole.
BLOCK, WHOLE = 2048, 8192


def cholesky_in_place(K: np.ndarray, whole: int = WHOLE, block: int = BLOCK) -> np.ndarray | None:
    """C with C C' = K in its lower triangle, over the memory of K; None if K is singular.

    Above the diagonal of C stand numbers without meaning.
    """
    C = K.T  # K is symmetric; columns are contiguous for LAPACK
    n = len(C)
    if n <= whole:
        potrf = scipy.linalg.lapack.get_lapack_funcs("potrf", (C,))
        C, info = potrf(C, lower=True, clean=False, overwrite_a=True)
        return C if info == 0 else None
    for a in range(0, n, block):
        b = min(a + block, n)
        try:
            C[a:b, a:b] = np.linalg.cholesky(C[a:b, a:b])
        except np.linalg.LinAlgError:
            return None
        for i in range(b, n, block):
            rows = slice(i, min(i + block, n))
            C[rows, a:b] = scipy.linalg.solve_triangular(
                C[a:b, a:b], C[rows, a:b].T, lower=True, check_finite=False
            ).T
            for j in range(b, i + 1, block):  # tiles up to the diagonal
                columns = slice(j, min(j + block, n))
                C[rows, columns] -= C[rows, a:b] @ C[columns, a:b].T
    return C
