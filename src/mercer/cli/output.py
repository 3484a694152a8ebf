"""Output of the command: tables, notes and progress on a terminal, JSON for scripts."""

import json
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
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class _SafeConsole(Console):
    """A console that shows control characters of the text as \\x1b instead of obeying them."""

    def render_str(self, text: Any, **options):
        return super().render_str(shown(text), **options)


def shown(text: str):
    """The text with control characters spelled out, as Python writes them."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


# Results go to stdout; whatever is said on the way goes to stderr.
out = _SafeConsole(highlight=False, width=None if sys.stdout.isatty() else 120)
err = _SafeConsole(stderr=True, highlight=False)


def tell(text: str):
    """A line of the result, as it is."""
    out.print(text, markup=False, soft_wrap=True)


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
    text = json.dumps(value, default=lambda array: array.tolist())
    plain = json.loads(text, parse_constant=lambda _: None)
    text = json.dumps(plain, indent=2, ensure_ascii=False)
    # JSON itself escapes the first 32 only; inside its texts \u009b means the same.
    sys.stdout.write(_CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n")


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


def _comparison_table(comparison: KernelComparison, width: int):
    """Kernels, best first, then ordinary models; a narrow terminal gets what matters most."""
    wide, scored = width >= 118, comparison.task is not None
    models: list[Any] = [*comparison.spaces, *comparison.baselines]
    others = list(comparison.spaces[0].scores)[1:] if wide else []
    group = {space.name for space in comparison.contest.group}
    longest = min(max(len(model.name) for model in models), 22)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for place, model in enumerate(models, 1):
        is_space = place <= len(comparison.spaces)
        row = {"": str(place) if is_space else ""} if scored else {}
        mark = "\n(not a kernel)" if is_space and not model.is_kernel else ""
        row["model"] = escape(model.name + mark)
        if scored:
            score = comparison.contest.shown(model)
            row |= {comparison.score_name or "": score, "chosen": escape(model.tuned)}
        scores = model.scores
        row |= {n: f"{np.mean(scores[n]):.3f}" if n in scores else "" for n in others}
        if is_space and (wide or not scored):
            row |= {"rank": str(model.rank), "eff. dim": f"{model.effective_dimension:.1f}"}
        if is_space and not scored:
            low, high = model.self_similarity
            row["self-similarity"] = f"{low:.2g} to {high:.2g}"
            row["condition"] = f"{model.condition:.0e}"
        for name in row if place == 1 else ():
            look: Any = {"justify": "right", "no_wrap": True, "style": None if name else "dim"}
            if name in ("model", "chosen"):
                look = {"overflow": "fold", "min_width": longest if name == "model" else None}
            table.add_column(name, **look)
        style = "bold" if model.name in group else None
        table.add_row(*row.values(), style=style if is_space else "dim")
    return table


def report(comparison: KernelComparison):
    """Table and verdict on stdout."""
    out.print(_comparison_table(comparison, out.width))
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
