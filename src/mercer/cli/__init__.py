"""The command `mercer`."""

import sys


def main():
    """Run the command; the console script of the package."""
    try:
        from .app import run
    except ImportError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in ("typer", "rich", "pandas", "click"):
            raise
        print(f"the command needs {missing}: pip install 'mercer[cli]'", file=sys.stderr)
        return 2
    return run()
