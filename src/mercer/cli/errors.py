"""The one kind of error that the command shows without a traceback."""


class BadInput(Exception):
    """Something about the input that the person can change."""
