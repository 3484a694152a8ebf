"""Errors in a file or a table, told to the person who can change it."""


class BadInput(ValueError):
    """Something about the input that the person can change: the command shows it as one line."""
