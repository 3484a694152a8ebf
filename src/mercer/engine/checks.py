"""Arguments that make no sense are refused by name, with the value seen, before any work."""

import math
import numbers


def require(condition, message):
    if not condition:
        raise ValueError(message)


def is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integer(value):
    """2 and 2.0, not 2.5, nan or inf."""
    return is_number(value) and math.isfinite(value) and value == int(value)


def is_count(value):
    """2, not 2.0."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_at_least(name, value, least):
    require(
        is_count(value) and value >= least,
        f"{name} must be an integer of at least {least}, got {value!r}.",
    )


def check_one_of(name, value, options):
    require(value in options, f"{name} must be one of {', '.join(options)}, got {value!r}.")
