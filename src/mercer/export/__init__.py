"""Models leave the library: files without code, ONNX graphs."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..doors import door as _door

if _TYPE_CHECKING:
    from .atomic import write_output
    from .checkpoint import Checkpoint
    from .model_files import needed_trust
    from .onnx import register, to_onnx
    from .safe_text import harmless_value

__getattr__ = _door(
    __name__,
    {
        "atomic": "write_output",
        "checkpoint": "Checkpoint",
        "model_files": "needed_trust",
        "onnx": "register to_onnx",
        "safe_text": "harmless_value",
    },
)
