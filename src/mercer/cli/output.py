"""Output of the command: tables, notes and progress on a terminal, JSON for scripts."""

import json
import math
import re
import sys
from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .. import KernelComparison

# Characters that a terminal obeys, besides line breaks and tabs: controls, and marks that write
# backwards.
# Columns and cells of a stranger's table may hold any of them. (Joiners and the like stay: Persian,
# Hindi and emoji need them.)
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class SafeConsole(Console):
    """A console that shows control characters of the text as \\x1b instead of obeying them."""

    def render_str(self, text: Any, **options):
        return super().render_str(shown(text), **options)


def shown(text: str):
    """The text with control characters spelled out, as Python writes them."""
    return CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


# Results go to stdout; whatever is said on the way goes to stderr.
out = SafeConsole(highlight=False, width=None if sys.stdout.isatty() else 120)
err = SafeConsole(stderr=True, highlight=False)


def say(text: str, style: str | None = None):
    err.print(escape(text), style=style, soft_wrap=True)


def warn(message: object, *_, **__):
    """A warning of Python's, in place of `warnings.showwarning`."""
    say(f"  · {message}")


def notes(lines: Iterable[str]):
    for line in lines:
        say(f"  · {line[0].upper()}{line[1:].rstrip('.')}.", "dim")


def as_json(value: Any):
    """One JSON object; what JSON has no number for becomes null."""
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False)
    # JSON itself escapes the first 32 only; inside its texts \u009b means the same.
    sys.stdout.write(CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n")


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
def progress(quiet: bool):
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

        def callback(done: int, total: int, what: str):
            bar.update(task, completed=done, total=total, description=escape(shown(what[:60])))

        yield callback


def comparison_table(comparison: KernelComparison, width: int):
    """Kernels, best first, then ordinary models; a narrow terminal gets what matters most."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    wide = width >= 118
    scored = comparison.task is not None
    if scored:
        table.add_column("", justify="right", style="dim")
    names = [*(s.name for s in comparison.spaces), *(b.name for b in comparison.baselines)]
    table.add_column("model", overflow="fold", min_width=min(max(map(len, names)), 22))
    if scored:
        table.add_column(comparison.score_name or "", justify="right", no_wrap=True)
        table.add_column("chosen", overflow="fold")
    others = list(comparison.spaces[0].scores)[1:]
    shown = others if wide else []
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    geometry = ["rank", "eff. dim"] if wide or not scored else []
    geometry += ["self-similarity", "condition"] if not scored else []
    for name in geometry:
        table.add_column(name, justify="right", no_wrap=True)
    group = {space.name for space in comparison.contest.group}
    for place, space in enumerate(comparison.spaces, 1):
        row = [str(place)] if scored else []
        mark = "" if space.is_kernel else "\n(not a kernel)"
        row.append(escape(space.name + mark))
        if scored:
            row += [_score(comparison, space), escape(space.tuned)]
        row += [f"{np.mean(space.scores[name]):.3f}" for name in shown]
        low, high = space.self_similarity
        geometric = [str(space.rank), f"{space.effective_dimension:.1f}"]
        geometric += [f"{low:.2g} to {high:.2g}", f"{space.condition:.0e}"]
        row += geometric[: len(geometry)]
        table.add_row(*row, style="bold" if space.name in group else None)
    for baseline in comparison.baselines:
        row = ["", escape(baseline.name), _score(comparison, baseline), ""]
        row += [
            f"{np.mean(baseline.scores[name]):.3f}" if name in baseline.scores else ""
            for name in shown
        ]
        table.add_row(*row, style="dim")
    return table


def _score(comparison, model):
    return f"{model.score:.3f} ± {comparison.contest.interval(model):.3f}"


def report(comparison: KernelComparison):
    """Table and verdict on stdout."""
    out.print(comparison_table(comparison, out.width))
    if comparison.task is not None:
        out.print(f"{comparison.score_name}: {comparison.score_meaning}.", style="dim")
    out.print()
    out.print(escape(comparison.headline), style="bold")
    reasons = Table.grid(padding=(0, 1))
    for reason in comparison.reasons:
        reasons.add_row(" ·", escape(reason))
    out.print(reasons)


def summary(comparison: KernelComparison, files: dict[str, str]):
    """The same for scripts."""
    return {
        "headline": comparison.headline,
        "reasons": comparison.reasons,
        "score": comparison.score_name,
        "kernels": [r for r in comparison.records() if r["kernel"] is not None],
        "baselines": [r for r in comparison.records() if r["kernel"] is None],
        "n_points": len(comparison),
        "task": comparison.task,
        "target": comparison.target_name,
        "best": None if comparison.task is None else comparison.best,
        "code": None if comparison.task is None else comparison.code(),
        "columns": comparison.columns,
        "notes": comparison.notes,
        "files": files,
    }
