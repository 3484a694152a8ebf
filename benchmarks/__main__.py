"""`python -m benchmarks [--quick] [--only NAME ...] [--output FOLDER]`: the table of ratios."""

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from . import (  # noqa: F401  register
    categories,
    fourier,
    machines,
    objects,
    plan,
    ridge_rows,
    rows,
    statistics,
    tables,
)
from .harness import ROWS, lines_of, measure, run_row


def main(argv=None):
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, under three minutes")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="rows to run (see --list)")
    parser.add_argument("--list", action="store_true", help="name the rows and stop")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads for everyone")
    parser.add_argument(
        "--output", type=Path, default=Path("bench-output"), help="JSON and picture"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        print(json.dumps(measure(*json.loads(options.child))))
        return 0
    if options.list:
        print("\n".join(f"{name:24} {line.title}" for name, line in ROWS.items()))
        return 0
    unknown = set(options.only or []) - set(ROWS)
    if unknown:
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}; --list names them")
    chosen = options.only or [n for n, line in ROWS.items() if line.quick or not options.quick]
    table = []
    for name in chosen:
        for line in lines_of(name, run_row(name, options.quick, options.threads)):
            table.append(line)
            print_line(line)
            sys.stdout.flush()
        save(table, options)  # after every row: a long run that is stopped keeps what it has
    print(f"\nwritten: {options.output / 'bench.json'}", end="")
    try:
        from .picture import draw
    except ImportError:
        print(" (no picture: matplotlib is not installed)")
        return 0
    draw(table, options.output / "bench.png")
    print(f", {options.output / 'bench.png'}")
    return 0


def print_line(line):
    if line["contender"] == "mercer":
        print(f"\n{line['title']}" + (f"  [{line['note']}]" if line["note"] else ""))
    ratio = "" if line["ratio"] is None else f"{line['ratio']:7.2f} x"
    if line["target"] is not None:
        ratio += f" (target {line['target']:g})" + (
            "" if line["ratio"] >= line["target"] else "  <-- below"
        )
    accuracy = ", ".join(f"{k} {v:.3g}" for k, v in line["accuracy"].items())
    print(
        f"  {line['contender']:34}{line['median_s']:10.4f} s +- {line['spread_s']:.4f}"
        f"{line['peak_gb']:7.2f} GB  {ratio:28} {accuracy}"
    )


def save(table, options):
    options.output.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "threads": options.threads}
    for package in ("numpy", "scipy", "sklearn", "mercer"):
        machine[package] = __import__(package).__version__
    text = json.dumps({"machine": machine, "quick": options.quick, "lines": table}, indent=1)
    (options.output / "bench.json").write_text(text)


if __name__ == "__main__":
    sys.exit(main())
