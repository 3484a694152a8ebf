"""to_onnx: fitted models as ONNX graphs, which run without Python."""

from .convert import register, to_onnx

__all__ = ["register", "to_onnx"]
