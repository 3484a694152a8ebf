"""The command: what each word after `mercer` runs, and how errors are told."""

import sys
import warnings
from typing import Annotated

import typer

from .. import __version__
from ..tables import BadInput
from . import output
from .check import check
from .compare import compare, demo
from .differ import differ
from .explore import explore_
from .fit_predict import fit, predict
from .map import map_

_app = typer.Typer(
    name="mercer",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Fit kernel models to tables, compare kernels, and look at their feature spaces.",
    epilog="Start with: [bold]mercer fit data.csv --target column[/bold]\n\n"
    "Without data of your own: [bold]mercer demo[/bold]",
)


def run():
    """The command; bad input ends in one line and exit code 2, without a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = output.warn
            result = _app(standalone_mode=False)
    except (BadInput, ValueError, TypeError, ImportError, OSError, MemoryError) as error:
        output.say(f"mercer: {error}", "bold red" if output.err.is_terminal else None)
        return 2
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of the command line itself
            output.say(f"mercer: {error.format_message()}\nTry: mercer --help")
            return 2
        raise
    return result if isinstance(result, int) else 0


def _version(asked: bool):
    if asked:
        typer.echo(f"mercer {__version__}")
        raise typer.Exit()


@_app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
):
    pass


# In the order in which --help lists them: what a new user needs comes first.
for _made in (fit, predict, compare, explore_, differ, check, map_, demo):
    _app.command(_made.__name__.rstrip("_"), epilog=_made.epilog)(_made)

if __name__ == "__main__":
    sys.exit(run())
