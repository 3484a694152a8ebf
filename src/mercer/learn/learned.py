from dataclasses import dataclass
import numpy as np

@dataclass(frozen=True)
class Round:
    error: float
    alpha: float
    kernel: str
    linear: float
    rows: int
    landmarks: int

@dataclass
class LearnedKernel:
    kernel: object
    alpha: float
    error: float
    history: list
    B: object
    scales: object

    @property
    def importances(self):
        m = (self.B**2).sum(axis=1)
        return m / m.sum()
