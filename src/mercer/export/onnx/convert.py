"""Fitted models as ONNX graphs: one model as one graph, and pipelines by skl2onnx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ... import KernelDiscriminant, Kernelized, RKHSFunction
from ...engine import Domain
from .graph import IR_VERSION, OPSET, Graph, Tensor, onnx_package
from .models import outputs

if TYPE_CHECKING:
    from onnx import ModelProto


def to_onnx(
    model: BaseEstimator | RKHSFunction, *, dtype: Literal["float64", "float32"] = "float64"
) -> ModelProto:
    """Write a fitted model as an ONNX graph, which runs without Python.

    Arithmetic is in double precision. Predictions, scores and inner products of coordinates agree
    with the model's; coordinates themselves may differ as their rounding is amplified where the
    kernel matrix is singular.

    Parameters
    ----------
    model : fitted KernelMap, KernelPCA, KernelPCAL1, KernelRidge, KernelRidgeCV, \
KernelRegressor, KernelClassifier (both on columns of numbers), KernelDiscriminant, \
KernelLogistic, KernelSVC (two classes), \
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
    Domain.one_of("float64", "float32")("dtype", str(dtype))
    if isinstance(model, RKHSFunction):
        width = model.points.shape[1] if model.points.ndim == 2 else None
    elif not isinstance(model, BaseEstimator) or isinstance(model, type):
        raise TypeError(f"to_onnx takes a fitted model, got {type(model).__name__}.")
    else:
        check_is_fitted(model)
        width = getattr(model, "n_features_in_", None)
    if isinstance(model, Pipeline):
        return _pipeline_to_onnx(model, width, dtype)
    graph = Graph()
    made = outputs(model, Tensor(graph, "X", width).cast(np.float64).of_width(width))
    number = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    described = []
    for name, tensor in made.items():
        kind = number
        if name == "label":
            inner: Any = model.estimator_ if isinstance(model, Kernelized) else model
            labels = {"f": "DOUBLE", "O": "STRING", "U": "STRING"}
            kind = getattr(onnx.TensorProto, labels.get(inner.classes_.dtype.kind, "INT64"))
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


# --- pipelines ------------------------------------------------------------------------------------


def register():
    """Teach skl2onnx this library's estimators; more than once does no harm.

    ``mercer.to_onnx(pipeline)`` does it by itself; call it before using skl2onnx directly.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import skl2onnx
    >>> import mercer.onnx
    >>> from mercer import KernelPCA
    >>> mercer.onnx.register()
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> pipeline = make_pipeline(StandardScaler(), KernelPCA(2)).fit(X)
    >>> skl2onnx.to_onnx(pipeline, X).graph.output[0].name
    'variable'
    """
    skl2onnx = _skl2onnx()
    for cls in _estimators():
        skl2onnx.update_registered_converter(
            cls, f"Mercer{cls.__name__}", _shapes, _convert, parser=_parse
        )


def _estimators():
    """Every estimator whose outputs are known, and those that are made from it."""
    known = [model for model in outputs.registry if issubclass(model, BaseEstimator)]
    return tuple(made for model in known for made in (model, *model.__subclasses__()))


def _pipeline_to_onnx(pipeline: Any, width: int | None, dtype: str):
    """The whole pipeline by skl2onnx, with double precision inside mercer's steps."""
    skl2onnx = _skl2onnx()
    register()
    *before, (_, last) = pipeline.steps
    if any(isinstance(step, KernelDiscriminant) for _, step in before):
        raise TypeError(
            "to_onnx: a KernelDiscriminant amid a pipeline is a transformer, which skl2onnx does "
            "not tell from the classifier; put it last."
        )
    number = {"float64": "DoubleTensorType", "float32": "FloatTensorType"}[str(dtype)]
    number = getattr(skl2onnx.common.data_types, number)
    zipped = is_classifier(last) and not isinstance(last, _estimators())
    return skl2onnx.to_onnx(
        pipeline,
        initial_types=[("X", number([None, width]))],
        options={id(last): {"zipmap": False}} if zipped else None,  # arrays, not lists of dicts
        target_opset=OPSET,
    )


def _parse(scope, model, inputs, custom_parsers=None):
    """One operator: labels and probabilities (or decision values) of classifiers, else numbers."""
    types = _skl2onnx().common.data_types
    operator = scope.declare_local_operator(f"Mercer{type(model).__name__}", model)
    operator.inputs.append(inputs[0])
    for name in ("label", "probabilities") if is_classifier(model) else ("variable",):
        guess = types.guess_tensor_type(inputs[0].type)
        operator.outputs.append(scope.declare_local_variable(name, guess))
    return operator.outputs


def _shapes(operator):
    """Types of the outputs: numbers as the input has them, labels as the classes are."""
    types = _skl2onnx().common.data_types
    number = type(types.guess_tensor_type(operator.inputs[0].type))
    rows = operator.inputs[0].type.shape[0]
    if not is_classifier(operator.raw_operator):
        operator.outputs[0].type = number([rows, None])
        return
    classes = operator.raw_operator.classes_
    label = types.StringTensorType if classes.dtype.kind in "OU" else types.Int64TensorType
    operator.outputs[0].type = label([rows])
    operator.outputs[1].type = number([rows, None])  # probabilities, or decision values


def _convert(scope, operator, container):
    """The graph of the model, put among the nodes of the pipeline's."""
    guess_type, model = _skl2onnx().common.data_types.guess_proto_type, operator.raw_operator
    graph = Graph(scope.get_unique_variable_name(f"mercer_{type(model).__name__}") + "_")
    X = Tensor(graph, operator.inputs[0].full_name).cast(np.float64).of_width(model.n_features_in_)
    for variable, tensor in zip(operator.outputs, outputs(model, X).values()):
        if tensor.width == 0 and len(variable.type.shape) == 2:
            tensor = graph.op("Reshape", tensor, np.array([-1, 1]))
        if guess_type(variable.type) != onnx_package().TensorProto.STRING:
            tensor = graph.op("Cast", tensor, to=guess_type(variable.type))
        tensor.named(variable.full_name)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.initializers)
    container.node_domain_version_pair_sets.add(("", OPSET))


def _skl2onnx():
    try:
        import skl2onnx
        import skl2onnx.common.data_types
    except ImportError as error:
        raise ImportError(
            "pipelines are converted by skl2onnx: pip install 'mercer[onnx]'."
        ) from error
    return skl2onnx
