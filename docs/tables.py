"""Render measurements into the Markdown pages that show them.

    python docs/tables.py [bench-output/bench.json] [--gpu bench-output/gpu.json]

`make bench` writes the first file, `python -m benchmarks.gpu --output bench-output` the second.
Tables stand between ``<!-- bench: NAME -->`` and ``<!-- end -->`` in docs/performance.md;
everything else is written by hand.
"""

import argparse
import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def seconds(value):
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"


def two_digits(value):
    return f"{float(f'{value:.2g}'):g}"  # 230, where .2g alone prints 2.3e+02


def numbers(accuracy):
    return ", ".join(
        f"{name} {value:.0f}" if value == int(value) else f"{name} {two_digits(value)}"
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
        ratio = "" if line["ratio"] is None else f"{two_digits(line['ratio'])} x"
        lines.append(
            f"| {row} | {line['contender']} | {seconds(line['median_s'])} ± "
            f"{seconds(line['spread_s'])} | {line['peak_gb']:.2g} GB | {ratio} | "
            f"{numbers(line['accuracy'])} |"
        )
        seen = line["row"]
    machine = ", ".join(f"{name} {value}" for name, value in bench["machine"].items())
    return "\n".join([*lines, "", f"Measured with {machine}. Peak memory includes the libraries."])


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
    elif options.gpu is None:
        parser.error(f"no file {options.bench}: run `make bench` first")
    if options.gpu is not None:
        fill(ROOT / "docs/performance.md", "gpu", gpu(json.loads(options.gpu.read_text())))


if __name__ == "__main__":
    main()
