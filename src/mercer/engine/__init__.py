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
    is_symbolic,
    itemsize,
    largest_power,
    lower_triangle,
    namespace,
    on_device_of,
    positive_part,
    put,
    row_norms,
    rows_of,
    same_kind,
    solve_triangular,
    to_torch,
)
from .checks import (
    Domain,
    check_at_least,
    check_classes,
    is_integer,
    is_number,
    require,
    short,
)
from .forms import Form
from .line_search import line_search
from .memory import MapBytes, MemoryLimitError, coordinates_bytes, matrix_bytes, readable
from .products import MatrixProduct
from .resources import Resources, current, using
from .threads import one_blas_thread, single_threaded
