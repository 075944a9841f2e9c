"""poolembed: text in bulk to vectors, classes, scores and token outputs."""

__version__ = "0.1.0"
