"""to_onnx: fitted models as ONNX graphs, which run without Python."""

from .convert import to_onnx
from .pipelines import register

__all__ = ["register", "to_onnx"]
