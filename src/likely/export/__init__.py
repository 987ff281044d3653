"""Models as SQL, ONNX and JavaScript: scores as expressions, written for other systems."""
