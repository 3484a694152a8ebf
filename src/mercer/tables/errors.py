"""What is wrong with a file or a table, for the person who can change it."""


class BadInput(ValueError):
    """Something about the input that the person can change: the command shows it as one line."""
