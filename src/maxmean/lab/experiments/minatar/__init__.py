"""MinAtar (section 7.4): the study, its figures, its claims, and a forecast of what it takes."""

from . import beyond, claims
from .study import MinAtarStudy

__all__ = ["MinAtarStudy", "beyond", "claims"]
