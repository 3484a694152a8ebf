"""Render measurements into the Markdown pages that show them.

    python docs/tables.py [bench-output/bench.json] [--gpu bench-output/gpu.json]

`make bench` writes the first file, `python -m benchmarks.gpu --output bench-output` the second.
Tables stand between ``<!-- bench: NAME -->`` and ``<!-- end -->`` in docs/performance.md;
everything else, the table of README.md too, is written by hand.
"""

import argparse
import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
# (row, peer, how the summary says it)
SHORT = [
    ("map_full_rank", "sklearn KernelPCA(None)", "exact map of 4000 points, full rank"),
    ("map_low_rank", "sklearn KernelPCA(None)", "exact map of 5000 points in the plane"),
    ("pca_5000", "sklearn dense (default)", "KernelPCA(50) of 5000 digits"),
    ("transform", "sklearn KernelPCA.transform", "20 000 new rows to 50 components"),
    ("landmarks_shuttle", "sklearn Nystroem", "500 landmarks of Shuttle, 58 000 rows"),
    ("ridge_cv", "sklearn GridSearchCV(KernelRidge)", "ridge, best of 20 alphas"),
    ("million", None, "1 000 000 points, every residual below 1e-8"),
]


def seconds(value):
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"


def numbers(accuracy):
    return ", ".join(
        f"{name} {value:.0f}" if value == int(value) else f"{name} {value:.2g}"
        for name, value in accuracy.items()
    )


def full(bench):
    """All rows: one line for each contender."""
    lines = ["| row | contender | median | peak memory | mercer is faster by | checked |"]
    lines.append("|---|---|---|---|---|---|")
    seen = None
    for line in bench["lines"]:
        generated = " (generated data)" if "stand-in" in line["note"] else ""
        row = f"`{line['row']}`{generated}" if line["row"] != seen else ""
        ratio = "" if line["ratio"] is None else f"{line['ratio']:.2g} x"
        lines.append(
            f"| {row} | {line['contender']} | {seconds(line['median_s'])} ± "
            f"{seconds(line['spread_s'])} | {line['peak_gb']:.2g} GB | {ratio} | "
            f"{numbers(line['accuracy'])} |"
        )
        seen = line["row"]
    machine = ", ".join(f"{name} {value}" for name, value in bench["machine"].items())
    return "\n".join([*lines, "", f"Measured with {machine}. Peak memory includes the libraries."])


def short(bench):
    """The summary: one line per row, against one peer."""
    found = {(line["row"], line["contender"]): line for line in bench["lines"]}
    lines = ["| task (2 CPU cores) | mercer | scikit-learn | ratio |", "|---|---|---|---|"]
    for row, peer, text in SHORT:
        ours, theirs = found.get((row, "mercer")), found.get((row, peer))
        if ours is None:
            continue
        accuracy = f" ({numbers(ours['accuracy'])})" if ours["accuracy"] else ""
        if theirs is None:
            lines.append(f"| {text} | {seconds(ours['median_s'])}{accuracy} | cannot | |")
            continue
        other = f" ({numbers(theirs['accuracy'])})" if theirs["accuracy"] else ""
        lines.append(
            f"| {text} | {seconds(ours['median_s'])}{accuracy} | "
            f"{seconds(theirs['median_s'])}{other} | {theirs['ratio']:.2g} x |"
        )
    return "\n".join(lines)


def gpu(rows):
    lines = ["| what | time | remark |", "|---|---|---|"]
    lines += [f"| {r['what'].strip()} | {r['best_s']:.3g} s | {r['remark']} |" for r in rows]
    return "\n".join(lines)


def fill(page, name, table):
    """Replace what stands between the markers of a table."""
    text = page.read_text()
    pattern = re.compile(rf"(<!-- bench: {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{page} has no table {name!r}.")
    page.write_text(pattern.sub(lambda m: f"{m[1]}\n{table}\n{m[2]}", text))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", type=Path, nargs="?", default=ROOT / "bench-output/bench.json")
    parser.add_argument("--gpu", type=Path)
    options = parser.parse_args(argv)
    if options.bench.exists():
        bench = json.loads(options.bench.read_text())
        fill(ROOT / "docs/performance.md", "full", full(bench))
        fill(ROOT / "docs/performance.md", "short", short(bench))
    elif options.gpu is None:
        parser.error(f"no file {options.bench}: run `make bench` first")
    if options.gpu is not None:
        fill(ROOT / "docs/performance.md", "gpu", gpu(json.loads(options.gpu.read_text())))


if __name__ == "__main__":
    main()
