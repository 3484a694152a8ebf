"""to_onnx: a fitted model as one graph."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ... import Kernelized, RKHSFunction
from .graph import IR_VERSION, OPSET, Graph, Tensor, onnx_package
from .models import outputs
from .pipelines import pipeline_to_onnx

if TYPE_CHECKING:
    from onnx import ModelProto

DTYPES = ("float64", "float32")


def to_onnx(
    model: BaseEstimator | RKHSFunction, *, dtype: Literal["float64", "float32"] = "float64"
) -> "ModelProto":
    """Write a fitted model as an ONNX graph, which runs without Python.

    Arithmetic is in double precision. Predictions, scores and inner products of coordinates agree
    with the model's; coordinates themselves may differ as their rounding is amplified where the
    kernel matrix is singular.

    Parameters
    ----------
    model : fitted KernelMap, KernelPCA, KernelPCAL1, KernelRidge, KernelRidgeCV, \
KernelRegressor, KernelClassifier (both on columns of numbers), KernelDiscriminant, \
DriftDetector (its decision_function), Kernelized with a linear estimator, \
RKHSFunction, or a Pipeline with these
        With kernels on vectors. Functions of Python, FromFunction and its like, cannot be written.
    dtype : {"float64", "float32"}, default="float64"
        Of the input and the outputs; what lies between is double precision in any case.

    Returns
    -------
    onnx.ModelProto
        Input "X"; outputs "coordinates", "scores", "prediction", "label", "probabilities",
        "decision" or "value", by the kind of model. A Pipeline is converted by skl2onnx, with its
        names; its other steps compute as skl2onnx has them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidge, to_onnx
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidge(alpha=0.01, kernel=RBF(1.0)).fit(x, np.sin(x[:, 0]))
    >>> graph = to_onnx(model)
    >>> [out.name for out in graph.graph.output]
    ['prediction']
    >>> import onnxruntime
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())
    >>> session.run(None, {"X": np.array([[1.5]])})[0].round(2)
    array([1.])
    """
    onnx = onnx_package()
    if str(dtype) not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}.")
    width = _width(model)
    if isinstance(model, Pipeline):
        return pipeline_to_onnx(model, width, dtype)
    graph = Graph()
    made = outputs(model, Tensor(graph, "X", width).cast(np.float64).of_width(width))
    number = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    described = []
    for name, tensor in made.items():
        kind = _label_type(model) if name == "label" else number
        (tensor if name == "label" else tensor.cast(dtype)).named(name)
        shape = [None] if tensor.width == 0 else [None, None]
        described.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    proto = onnx.helper.make_graph(
        graph.nodes,
        type(model).__name__,
        [onnx.helper.make_tensor_value_info("X", number, [None, width])],
        described,
        graph.initializers,
    )
    proto = onnx.helper.make_model(
        proto,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="mercer",
    )
    onnx.checker.check_model(proto)
    return proto


def _width(model):
    """Columns of the input."""
    if isinstance(model, RKHSFunction):
        return model.points.shape[1] if model.points.ndim == 2 else None
    if not isinstance(model, BaseEstimator) or isinstance(model, type):
        raise TypeError(f"to_onnx takes a fitted model, got {type(model).__name__}.")
    check_is_fitted(model)
    return getattr(model, "n_features_in_", None)


def _label_type(model):
    onnx = onnx_package()
    inner = model.estimator_ if isinstance(model, Kernelized) else model
    kinds = {"f": "DOUBLE", "O": "STRING", "U": "STRING"}
    return onnx.TensorProto.DataType.Value(kinds.get(inner.classes_.dtype.kind, "INT64"))
