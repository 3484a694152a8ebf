"""``import mercer.onnx``: the public door to ONNX export, which lives in ``mercer.export.onnx``."""

from .export.onnx import register, to_onnx

__all__ = ["register", "to_onnx"]
