"""Export trained models as safetensors, `torch.export` programs and ONNX, and verify the files."""

from hookline.export.card import write_card
from hookline.export.errors import ExportError
from hookline.export.formats import FORMATS, export_model
from hookline.export.verification import TOLERANCE, OnnxModel, verify_onnx, verify_program

__all__ = [
    "FORMATS",
    "TOLERANCE",
    "ExportError",
    "OnnxModel",
    "export_model",
    "verify_onnx",
    "verify_program",
    "write_card",
]
