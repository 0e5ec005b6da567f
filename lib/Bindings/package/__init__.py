"""MLIR's Python bindings, built from upstream's sources together with this project's dialects and passes."""
