"""``import mercer.onnx``: the public door to ONNX export, which lives in ``mercer.export.onnx``."""

from .export import register, to_onnx

__all__ = ["register", "to_onnx"]
