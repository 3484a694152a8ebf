"""Models leave the library: files without code, ONNX graphs."""
