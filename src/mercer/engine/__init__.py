"""Arrays, tiles, products, threads and memory. The engine knows no kernel by name."""

from .arrays import (
    Array,
    TravelsAsNumPy,
    as_host,
    as_numpy,
    cholesky,
    device,
    eigh,
    eps_of,
    evenly,
    free_memory,
    gram,
    in_place,
    inverse_of_factor,
    is_array,
    is_cpu,
    is_matrix,
    is_numpy,
    is_single,
    is_symbolic,
    itemsize,
    largest_power,
    lower_triangle,
    namespace,
    on_device_of,
    positive_part,
    power_of_two,
    put,
    put_rows,
    row_norms,
    rows_of,
    same_kind,
    solve_triangular,
    to_host,
    to_torch,
    transposed_product,
)
from .checks import (
    check_at_least,
    check_classes,
    check_one_of,
    is_count,
    is_integer,
    is_number,
    require,
)
from .doors import door
from .forms import Form
from .line_search import line_search
from .memory import (
    LANDMARK_SHARE,
    MapBytes,
    MemoryLimitError,
    budget,
    columns_that_fit,
    coordinates_bytes,
    landmarks_that_fit,
    matrix_bytes,
    readable,
)
from .products import (
    FUSED_SUMS,
    MatrixProduct,
    exact_product,
    exact_shares,
    quick_product,
    quick_shares,
)
from .resources import Resources, current, using
from .sklearn_compat import libsvm
from .threads import blas_threads_for, one_blas_thread, single_threaded
