"""Does the plan hold? Every solver's predicted cost beside its measured time.

`python -m benchmarks.plan` prints all of them; the row `plan` counts pairs of solvers whose
measured order is not the predicted one by more than a factor of 1.5.
"""

import time

import numpy as np

from .harness import row

# Measured times within this factor count as equal.
CLOSE = 1.5
# What takes longer is measured once.
LONG = 2.0


def problems(quick):
    """(name, function that makes the problem): sizes, kernels of low and full rank, penalties."""
    from mercer import RBF, Laplacian, Matern

    sizes = (500, 1500) if quick else (500, 1500, 4000, 8000)
    for n in sizes:
        yield f"smooth 2-D, n = {n}", _made(RBF(0.3), n, 2, 0.1)
        yield f"smooth 3-D, n = {n}", _made(RBF(0.1), n, 3, 0.01)
        yield f"rough 5-D, n = {n}", _made(Matern(1.5, 2.0), n, 5, 0.1)
        yield f"rough 10-D, n = {n}", _made(Laplacian(0.05), n, 10, 0.01)
        if n <= 4000:
            yield f"leave-one-out, smooth, n = {n}", _made(RBF(0.3), n, 2, None)
            yield f"leave-one-out, rough, n = {n}", _made(Matern(1.5, 2.0), n, 5, None)


def _made(kernel, n, d, alpha):
    def make():
        from mercer.rows import Training
        from mercer.solve import Given, LeaveOneOut, RidgeProblem

        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        T = np.sin(X.sum(axis=1, keepdims=True)) + 0.1 * rng.normal(size=(n, 1))
        rule = LeaveOneOut(np.logspace(-4, 1, 10)) if alpha is None else Given(np.array([alpha]))
        return RidgeProblem(Training.of(kernel, X), T, rule)

    return make


def measured(make):
    """{solver: (predicted seconds, measured seconds or None where it gave up)} of one problem."""
    from mercer.solve.auto import offered
    from mercer.solve.solver import CannotSolve

    found = {}
    for solver, way in offered(make()):
        if way.refusal is not None:
            continue
        times = []
        for _ in range(2):
            problem = make()
            start = time.perf_counter()
            try:
                solver.solve(problem)
            except CannotSolve:
                times = [None]
                break
            times.append(time.perf_counter() - start)
            if times[-1] > LONG:
                break
        found[solver.name] = way.seconds, min(times) if times[0] else None
    return found


def disorder(found):
    """(pairs of solvers, pairs that are measured in another order than predicted)."""
    known = [(p, m) for p, m in found.values() if m is not None]
    pairs = [(a, b) for a in known for b in known if a[0] < b[0]]
    return len(pairs), sum(a[1] > CLOSE * b[1] for a, b in pairs)


def _mercer(chosen):
    def call():
        totals = np.array([disorder(measured(make)) for _, make in chosen])
        return totals.sum(axis=0)

    return call


@row(
    title="the predicted order of ridge's solvers against the measured one",
    contenders={"mercer": _mercer},
    accuracy=lambda chosen, got: {"pairs": float(got[0]), "out of order": float(got[1])},
    repeats=1,
    rounds=1,
)
def plan(quick):
    return list(problems(quick))


def main():
    total = np.zeros(2, dtype=int)
    for name, make in problems(False):
        found = measured(make)
        total += disorder(found)
        text = ", ".join(
            f"{solver} {'gave up' if m is None else f'{m:.3f} s'} ({p:.3f})"
            for solver, (p, m) in found.items()
        )
        print(f"{name:32} {text}", flush=True)
    print(f"{total[0]} pairs, {total[1]} out of order by more than {CLOSE}")


if __name__ == "__main__":
    main()
