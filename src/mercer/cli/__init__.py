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
    for stream in (sys.stdout, sys.stderr):  # a terminal without ² gets a question mark
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    return run()
