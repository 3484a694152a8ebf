"""`python -m benchmarks.fused_check [--n 200000]`: are fused products right, and how fast?

Every function is compared with a plain product in double precision, then tile sizes are timed in
kernel values per second. Needs one GPU with torch and Triton, and nothing else of mercer than
engine/forms.py and engine/fused.py, which are loaded from their files. A variant that fails prints
its error, and the others go on.
"""

import argparse
import importlib.util
import itertools
import sys
import time
from functools import partial
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent


def load(name):
    """A file of the engine by its path: no other part of the library is imported."""
    for folder in (HERE.parent / "src" / "mercer" / "engine", HERE):
        path = folder / f"{name}.py"
        if path.exists():
            spec = importlib.util.spec_from_file_location(name, path)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            return module
    raise FileNotFoundError(f"{name}.py is not beside this file, nor in src/mercer/engine.")


def plain(name, t, *numbers):
    """The formulas again, from minus the squared distance or from the inner product."""
    d = torch.sqrt(torch.clamp(-t, min=0.0))
    if name == "exp":
        return torch.exp(t)
    if name == "matern12":
        return torch.exp(-d)
    if name == "matern32":
        return (1 + 3**0.5 * d) * torch.exp(-(3**0.5) * d)
    if name == "matern52":
        return (1 + 5**0.5 * d - 5 / 3 * t) * torch.exp(-(5**0.5) * d)
    if name == "rational":
        return (1 - t / (2 * numbers[0])) ** -numbers[0]
    return (t + numbers[0]) ** numbers[1]


def reference(form, X, Z, V):
    """k(X, Z) V by blocks, in double precision, distances from differences."""
    X, Z, V = (A.to(torch.float64) for A in (X, Z, V))
    out = torch.zeros((X.shape[0], V.shape[1]), dtype=torch.float64, device=X.device)
    for a in range(0, X.shape[0], 1024):
        rows = X[a : a + 1024]
        for term in form.terms:
            K = torch.full((rows.shape[0], Z.shape[0]), term.coefficient, device=X.device).double()
            for leaf in term.leaves:
                x, z = rows * leaf.scale, Z * leaf.scale
                distances = torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist")
                t = -(distances**2) if leaf.of_distance else x @ z.T
                K *= plain(leaf.function, t, *leaf.numbers)
            out[a : a + 1024] += K @ V
    return out


def timed(call, repeats=3):
    call()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def attempt(label, work):
    start = time.perf_counter()
    try:
        result = work()
    except Exception as error:  # every variant is tried
        result = f"FAILED: {type(error).__name__}: {str(error).strip()[:300]}"
    print(f"{label:58} {result}   [{time.perf_counter() - start:.1f} s]", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200_000, help="rows of the timed products")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="only the checks")
    options = parser.parse_args()
    forms, fused = load("forms"), load("fused")
    if options.device == "cuda":
        print(torch.cuda.get_device_name(), "torch", torch.__version__, "triton", end=" ")
        print(sys.modules["triton"].__version__)
    check(forms.Form, fused.FusedProduct, options.device)
    if not options.quick:
        speed(forms.Form, fused.FusedProduct, options.n, options.device)
        pykeops(options.n)


def check(Form, Product, device, n=3000, m=2500):
    distance, inner = Form.of, partial(Form.of, of_distance=False)
    half, formula = Form.constant(0.5), None
    cases = {
        "exp": distance(0.4, formula, "exp"),
        "matern12": distance(0.5, formula, "matern12"),
        "matern32": distance(0.5, formula, "matern32"),
        "matern52": distance(0.5, formula, "matern52"),
        "rational": distance(0.5, formula, "rational", 0.7),
        "power": inner(0.3, formula, "power", 1.0, 3),
        "half exp * matern12 + linear + 0.5": half
        * distance(0.2, formula, "exp")
        * distance(0.5, formula, "matern12")
        + inner(0.5, formula, "power", 0.0, 1)
        + half,
        "exp * matern32 * power": distance(0.2, formula, "exp")
        * distance(0.3, formula, "matern32")
        * inner(0.3, formula, "power", 1.0, 2),
    }
    generator = torch.Generator(device=device).manual_seed(0)

    def random(*shape):
        return torch.randn(*shape, generator=generator, device=device, dtype=torch.float64)

    print("largest error relative to the largest entry: quick / exact")
    for (name, form), d, targets in itertools.product(cases.items(), (10, 30, 100), (1, 3)):
        if d > 10 and name != "matern52":
            continue
        X, Z, V = random(n, d) + 3, random(m, d) + 3, random(m, targets)
        X, Z = X * (10 / d) ** 0.5, Z * (10 / d) ** 0.5

        def compare(form=form, X=X, Z=Z, V=V):
            errors = []
            for exact in (False, True):
                for rows, columns in ((X, Z), (Z, None)):
                    want = reference(form, rows, rows if columns is None else columns, V)
                    got = Product(form, rows, columns, exact=exact)(V)
                    errors.append(float((got - want).abs().max() / want.abs().max()))
            verdict = "ok" if max(errors[:2]) < 1e-5 and max(errors[2:]) < 1e-13 else "WRONG"
            return verdict + "".join(f" {error:.1e}" for error in errors)

        attempt(f"{name}, d = {d}, {targets} right-hand side(s)", compare)


def speed(Form, Product, n, device):
    formula = None
    generator = torch.Generator(device=device).manual_seed(0)
    X = torch.randn(n, 10, generator=generator, device=device, dtype=torch.float32)
    v = torch.randn(n, 1, generator=generator, device=device, dtype=torch.float64)
    matern = Form.of(0.3, formula, "matern52")

    def rate(form, X, v, exact=False, **settings):
        product = Product(form, X, exact=exact, settings=settings)
        seconds = timed(lambda: product(v))
        return f"{X.shape[0] ** 2 / seconds:.3e} kernel values per second ({seconds:.4f} s)"

    print(f"\nspeed, n = {n}, d = 10, matern52, one right-hand side, float32")
    for rows, columns, warps, stages in (
        (64, 64, 4, 2),
        (64, 64, 4, 1),
        (64, 64, 4, 3),
        (128, 64, 4, 2),
        (128, 64, 8, 2),
        (64, 128, 4, 2),
        (128, 128, 8, 2),
        (128, 32, 4, 2),
        (64, 32, 4, 2),
        (64, 64, 2, 2),
    ):
        settings = {"rows": rows, "columns": columns, "warps": warps, "stages": stages}
        attempt(f"quick {settings}", lambda s=settings: rate(matern, X, v, **s))
    for name, numbers in (("exp", ()), ("matern12", ()), ("matern32", ()), ("rational", (0.7,))):
        form = Form.of(0.3, formula, name, *numbers)
        attempt(f"quick {name}", lambda form=form: rate(form, X, v))
    power = Form.of(0.3, formula, "power", 1.0, 3, of_distance=False)
    attempt("quick power 3", lambda: rate(power, X, v))
    attempt("quick, 8 right-hand sides", lambda: rate(matern, X, v.expand(-1, 8).contiguous()))
    for d in (32, 64, 128, 784):
        some = torch.randn(n // 2, d, generator=generator, device=device, dtype=torch.float32)
        small = Form.of(0.3 / d**0.5, formula, "matern52")
        attempt(f"quick d = {d}, n = {n // 2}", lambda s=some, f=small: rate(f, s, v[: n // 2]))
    few, fewer = X[: n // 2], v[: n // 2]
    for rows, columns, warps in (
        (64, 32, 4),
        (32, 32, 4),
        (64, 64, 4),
        (64, 64, 8),
        (128, 32, 8),
        (32, 32, 2),
        (32, 64, 2),
    ):
        settings = {"rows": rows, "columns": columns, "warps": warps}
        label = f"exact (float64) n = {n // 2} {settings}"
        attempt(label, lambda s=settings: rate(matern, few, fewer, exact=True, **s))
    attempt("exact, 3 right-hand sides", lambda: rate(matern, few, fewer.expand(-1, 3), exact=True))


def pykeops(n):
    def product():
        from pykeops.torch import LazyTensor

        X = torch.randn(n, 10, device="cuda")
        v = torch.randn(n, 1, device="cuda")
        x, z = LazyTensor(X[:, None, :]), LazyTensor(X[None, :, :])
        s = 5 * 0.09 * ((x - z) ** 2).sum(-1)
        d = s.sqrt()
        K = (1 + d + s / 3) * (-d).exp()
        seconds = timed(lambda: K @ v)
        return f"{n * n / seconds:.3e} kernel values per second"

    attempt("pykeops, matern52", product)


if __name__ == "__main__":
    main()
