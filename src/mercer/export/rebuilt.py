"""Types that files hold as the arguments of their makers, and how each is made again, checked.

Native code of NumPy, SciPy and scikit-learn reads these objects without looking at bounds:
whatever it indexes with is checked here, before the object exists.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse

from ..estimators.sklearn_compat import tree_parts
from .registry import find, public_name

WORDS_OF_MERSENNE_TWISTER = 624


def expect(condition, message):
    if not condition:
        raise ValueError(message)


def is_index(value):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


# --- random states --------------------------------------------------------------------------------


def _random_state(kind, key, position, has_gauss, gauss):
    expect(kind == "MT19937", f"a random state of kind {kind!r}")
    expect(
        isinstance(key, np.ndarray)
        and key.dtype == np.uint32
        and key.shape == (WORDS_OF_MERSENNE_TWISTER,),
        "a random state whose key is not 624 words",
    )
    expect(
        is_index(position) and 0 <= position <= WORDS_OF_MERSENNE_TWISTER,
        f"a random state at position {position!r}",
    )
    made = np.random.RandomState()
    made.set_state((kind, key, int(position), int(bool(has_gauss)), float(gauss)))
    return made


# --- sparse matrices ------------------------------------------------------------------------------


def _compressed(cls):
    def made(rows, columns, data, indices, indptr):
        expect(
            is_index(rows) and is_index(columns) and rows >= 0 and columns >= 0,
            f"a sparse matrix of shape ({rows!r}, {columns!r})",
        )
        for part in (data, indices, indptr):
            expect(
                isinstance(part, np.ndarray) and part.ndim == 1,
                "a sparse matrix whose parts are not vectors",
            )
        for part in (indices, indptr):
            expect(part.dtype.kind == "i", "a sparse matrix whose indices are not integers")
        expect(data.dtype.kind in "biufc", f"a sparse matrix of {data.dtype}")
        matrix = cls((data, indices, indptr), shape=(rows, columns))
        _check_indices(matrix)
        return matrix

    return made


def _check_indices(matrix):
    matrix.check_format(full_check=True)  # every index within the shape


# --- trees ----------------------------------------------------------------------------------------


def _tree(n_features, n_classes, n_outputs, max_depth, nodes, values):
    NODE_DTYPE, Tree = tree_parts()

    expect(
        all(map(is_index, (n_features, n_outputs, max_depth))) and n_features > 0 < n_outputs,
        "a tree without features or outputs",
    )
    expect(
        isinstance(n_classes, np.ndarray)
        and n_classes.dtype.kind == "i"
        and n_classes.shape == (n_outputs,)
        and (n_classes > 0).all(),
        "a tree whose classes do not fit its outputs",
    )
    expect(
        isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype == NODE_DTYPE,
        "a tree whose nodes have another layout",
    )
    n = len(nodes)
    expect(
        isinstance(values, np.ndarray)
        and values.dtype == np.float64
        and values.shape == (n, n_outputs, int(n_classes.max()))
        and n > 0,
        "a tree whose values do not fit its nodes",
    )
    depth = _depth(nodes["left_child"], nodes["right_child"], nodes["feature"], n_features)
    expect(depth == max_depth, f"a tree of depth {depth} that claims {max_depth}")
    made = Tree(int(n_features), n_classes.astype(np.intp), int(n_outputs))
    made.__setstate__(
        {
            "max_depth": int(max_depth),
            "node_count": n,
            "nodes": nodes,
            "values": np.ascontiguousarray(values),
        }
    )
    return made


def _tree_arguments(tree):
    state = tree.__getstate__()
    return (
        tree.n_features,
        tree.n_classes,
        tree.n_outputs,
        state["max_depth"],
        state["nodes"],
        state["values"],
    )


def _depth(left, right, feature, n_features):
    """Depth of the tree; ValueError unless every node is reached once, by a known feature."""
    frontier, seen, depth = np.array([0]), np.zeros(len(left), bool), -1
    while len(frontier):
        expect(not seen[frontier].any(), "a tree in which two branches meet")
        seen[frontier] = True
        inner = frontier[left[frontier] != -1]
        children = np.concatenate([left[inner], right[inner]])
        expect(((children > 0) & (children < len(left))).all(), "a tree with a child outside it")
        expect(len(np.unique(children)) == len(children), "a tree in which two branches meet")
        expect(
            ((feature[inner] >= 0) & (feature[inner] < n_features)).all(),
            "a tree that splits by a feature outside its data",
        )
        frontier, depth = children, depth + 1
    expect(seen.all(), "a tree with nodes that no branch reaches")
    return depth


# --- splines, masks, bunches ----------------------------------------------------------------------


def _spline(t, c, k, extrapolate):
    from scipy.interpolate import BSpline

    expect(
        isinstance(t, np.ndarray) and isinstance(c, np.ndarray) and t.dtype == c.dtype == float,
        "a spline without knots or coefficients",
    )
    expect(is_index(k) and 0 <= k < len(t), f"a spline of degree {k!r}")
    expect(extrapolate in (True, False, "periodic"), f"a spline with {extrapolate!r}")
    return BSpline(t, c, int(k), extrapolate)  # which checks that knots ascend and suffice


def _masked(data, mask):
    expect(
        isinstance(data, np.ndarray) and isinstance(mask, np.ndarray) and mask.dtype == bool,
        "a masked array without its mask",
    )
    expect(mask.shape == data.shape, "a masked array whose mask has another shape")
    return np.ma.MaskedArray(data, mask)


def _bunch(content):
    from sklearn.utils import Bunch

    expect(isinstance(content, dict) and all(isinstance(k, str) for k in content), "an odd Bunch")
    return Bunch(**content)


# --- losses and hyperparameters -------------------------------------------------------------------


def _loss_arguments(loss):
    """The numbers that make a loss of scikit-learn's native code."""
    loss = getattr(loss, "closs", loss)
    function, arguments = loss.__reduce__()[:2]
    return tuple(arguments if function is type(loss) else (arguments[2] or ()))


def _called(name):
    """The class of this name, called with plain values."""

    def made(*arguments):
        plain = (str, int, float, type(None), np.ndarray)
        expect(all(isinstance(a, plain) for a in arguments), f"odd arguments of {name}")
        return find(name)(*arguments)

    return made


# --- the table ------------------------------------------------------------------------------------

# {name in files: (what an object is made of, how it is made again)}
MAKERS: dict[str, tuple[Callable, Callable]] = {
    "builtins.range": (lambda r: (r.start, r.stop, r.step), range),
    "numpy.random.RandomState": (lambda state: state.get_state(legacy=True), _random_state),
    "numpy.ma.MaskedArray": (lambda a: (np.asarray(a.data), np.ma.getmaskarray(a)), _masked),
    "sklearn.utils.Bunch": (lambda bunch: (dict(bunch),), _bunch),
    "scipy.interpolate.BSpline": (lambda s: (s.t, s.c, s.k, s.extrapolate), _spline),
    "sklearn.tree._tree.Tree": (_tree_arguments, _tree),
    "sklearn.gaussian_process.kernels.Hyperparameter": (
        tuple,
        _called("sklearn.gaussian_process.kernels.Hyperparameter"),
    ),
}
for _class in (
    scipy.sparse.csr_array,
    scipy.sparse.csr_matrix,
    scipy.sparse.csc_array,
    scipy.sparse.csc_matrix,
):
    MAKERS[public_name(_class)] = (
        lambda m: (*m.shape, m.data, m.indices, m.indptr),
        _compressed(_class),
    )
for _module, _names in {
    "sklearn.linear_model._sgd_fast": (
        "EpsilonInsensitive Hinge ModifiedHuber SquaredEpsilonInsensitive SquaredHinge"
    ),
    "sklearn._loss": (
        "HalfBinomialLoss HalfGammaLoss HalfPoissonLoss HalfSquaredError HalfTweedieLoss "
        "HalfTweedieLossIdentity"
    ),
    "sklearn._loss.loss": "HalfTweedieLossIdentity",
    "sklearn._loss._loss": "CyHalfBinomialLoss CyHalfSquaredError CyHuberLoss",
}.items():
    for _name in _names.split():
        MAKERS[f"{_module}.{_name}"] = (_loss_arguments, _called(f"{_module}.{_name}"))
