"""`python -m benchmarks.against COMMIT ROW ...`: mercer as it is, beside an earlier commit.

Both take turns, each measurement in a process of its own, with the benchmark of its own time. A row
of a few milliseconds, or a busy machine, needs more --rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[1]


def times(root, row, repeats):
    """Seconds of mercer on one row, by the code and the benchmark in the folder `root`."""
    env = os.environ | {"PYTHONPATH": str(root / "src")}
    job = json.dumps([row, "mercer", False, repeats])
    command = [sys.executable, "-m", "benchmarks", "--child", job]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{row} in {root}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])["times"]


def main(argv=None):
    parser = argparse.ArgumentParser(prog="benchmarks.against", description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("rows", nargs="+", metavar="ROW")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(old), options.commit], check=True)
        try:
            for row in options.rows:
                found = {old: [], HERE: []}
                for i in range(options.rounds):
                    for root in list(found)[:: 1 if i % 2 else -1]:
                        found[root] += times(root, row, options.repeats)
                a, b = (statistics.median(found[root]) for root in (old, HERE))
                least = min(found[HERE]) / min(found[old])
                print(
                    f"{row:24}{a:9.4f} s then, {b:9.4f} s now: {b / a:.3f} x (best {least:.3f} x)"
                )
        finally:
            subprocess.run([*git, "remove", "--force", str(old)], check=True)


if __name__ == "__main__":
    main()
