"""What the command says: tables, notes and progress on a terminal, JSON for scripts."""

import json
import math
import sys
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..explore.compare.scores import standard_error

# Results go to stdout; whatever is said on the way goes to stderr.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
err = Console(stderr=True, highlight=False)


def say(text, style=None):
    err.print(escape(text), style=style, soft_wrap=True)


def notes(lines):
    for line in lines:
        say(f"  · {line[0].upper()}{line[1:].rstrip('.')}.", "dim")


def as_json(value):
    """One JSON object; what JSON has no number for becomes null."""
    sys.stdout.write(json.dumps(_plain(value), indent=2, ensure_ascii=False) + "\n")


def _plain(value):
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def progress(quiet):
    """A callback (done, total, what) that moves a bar; silent for scripts and pipes."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=quiet or not err.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=None)

        def callback(done, total, what):
            bar.update(task, completed=done, total=total, description=escape(what[:60]))

        yield callback


def comparison_table(comparison, width):
    """The ranked table, best first; a narrow terminal gets the columns that matter most."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    first, wide = comparison.spaces[0], width >= 118
    refuted = any(space.validity == "refuted" for space in comparison.spaces)
    if first.scores:
        table.add_column("", justify="right", style="dim")
    longest = max(len(space.name) for space in comparison.spaces)
    table.add_column("kernel", overflow="fold", min_width=min(longest, 28 if wide else 16))
    numbers = [method.replace("nearest ", "") for method in first.scores]
    numbers += ["alignment"] if first.scores else []
    numbers += ["rank", "eff. dim", "self-similarity"] + (["condition"] if wide else [])
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    if wide or refuted:
        table.add_column("valid", no_wrap=True)
    for space, record in zip(comparison.spaces, comparison.records()):
        row = [str(record["place"])] if space.scores else []
        row.append(escape(space.name))
        for folds in space.scores.values():
            error = f" ± {standard_error(folds):.3f}" if wide else ""
            row.append(f"{np.mean(folds):.3f}{error}")
        row += [f"{space.alignment:.2f}"] if space.scores else []
        low, high = space.self_similarity
        row += [str(space.rank), f"{space.effective_dimension:.1f}", f"{low:.2g} to {high:.2g}"]
        row += [f"{space.condition:.0e}"] if wide else []
        row += [space.validity] if wide or refuted else []
        table.add_row(*row, style="bold" if record.get("within_noise_of_best") else None)
    return table


def report(comparison):
    """Table and verdict on stdout."""
    out.print(comparison_table(comparison, out.width))
    out.print()
    out.print(escape(comparison.headline), style="bold")
    reasons = Table.grid(padding=(0, 1))
    for reason in comparison.reasons:
        reasons.add_row(" ·", escape(reason))
    out.print(reasons)


def summary(comparison, files, notes):
    """The same for scripts."""
    return {
        "headline": comparison.headline,
        "reasons": comparison.reasons,
        "kernels": comparison.records(),
        "n_points": len(comparison),
        "task": comparison.task,
        "notes": [*notes, *comparison.notes],
        "files": files,
    }
