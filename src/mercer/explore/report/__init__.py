"""The page: one self-contained HTML file with every kernel's space, linked by selection."""

from .page import write_report

__all__ = ["write_report"]
