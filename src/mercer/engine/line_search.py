"""A search along one parameter, whose first value may be far off."""

import math
from collections.abc import Callable

# Most steps outwards from the first value, and the relative gain that a further step must bring:
# towards infinite lengths the error may fall for ever, by less and less.
_MOST_STEPS = 5
_LEAST_GAIN = 0.01


def line_search(error: Callable[[float], float], step: float) -> float:
    """The x with a small error(x), found from x = 0 by steps until it is bracketed.

    The search walks downhill until the error rises again on both sides, and ends with the vertex of
    the parabola through the last three values: it cannot stop at the end of a grid.
    """
    tried = {0: error(0.0)}

    def at(i: int) -> float:
        if i not in tried:
            tried[i] = error(i * step)
        return tried[i]

    best = 0
    direction = 1 if at(1) < tried[0] else -1
    while at(best + direction) < (1 - _LEAST_GAIN) * tried[best] and abs(best) < _MOST_STEPS:
        best += direction
    a, b, c = at(best - 1), tried[best], at(best + 1)
    # A parabola needs three finite errors.
    vertex = 0.5 * (a - c) / (a + c - 2 * b) if math.inf > a + c > 2 * b else 0.0
    # Near the middle value, or on a flat floor, the vertex is worth no further evaluation.
    if abs(vertex) < 0.15 or min(a, c) < (1 + _LEAST_GAIN) * b:
        return best * step
    return (best + vertex) * step if error((best + vertex) * step) < b else best * step
