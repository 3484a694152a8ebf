"""`python -m benchmarks.gpu [--mnist FILE]`: the same code on one GPU, beside its floors.

Floors are measured in the same run: the matrix product behind the kernel, and the Cholesky
factorisation of the library underneath. Times are from a host array to results on the host, the
best of the repetitions (a GPU has no background load), with the median beside it.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np


def timed(call, repeats=3):
    import torch

    times = []
    result = None
    for _ in range(repeats):
        result = None
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times), statistics.median(times), result


def shifted(X):
    """x -> 2x - 1, pixels from [0, 1] to [-1, 1]: [EXACT] (29)."""
    return 2.0 * X - 1.0


def k2(d):
    """((<2x-1, 2z-1> / d + 1) / 2)^9: [EXACT] (29)."""
    from mercer import OnFeatures, Polynomial

    return OnFeatures(Polynomial(9, gamma=0.5 / d, coef0=0.5), shifted)


def digits(path, n):
    if path is None:
        rng = np.random.default_rng(0)
        y = rng.integers(0, 10, n + 10_000)
        X = np.clip(rng.random((10, 784))[y] + 0.3 * rng.normal(size=(n + 10_000, 784)), 0, 1)
        return X[:n], y[:n], X[n:], y[n:]
    data = np.load(path)
    X, Z = data["x_train"][:n].reshape(n, -1) / 255.0, data["x_test"].reshape(10_000, -1) / 255.0
    return X, data["y_train"][:n], Z, data["y_test"]


class Table:
    def __init__(self):
        self.lines = []

    def add(self, what, best, median, remark=""):
        self.lines.append({"what": what, "best_s": best, "median_s": median, "remark": remark})
        print(f"{what:66}{best:9.3f} s  (median {median:.3f})  {remark}", flush=True)


def main(argv=None):
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mnist", type=Path, help="npz with x_train, y_train, x_test, y_test")
    parser.add_argument("--n", type=int, default=60_000)
    parser.add_argument("--output", type=Path, help="folder for gpu.json")
    parser.add_argument("--skip-cpu", action="store_true", help="leave out the CPU peer")
    parser.add_argument("--only-ridge", action="store_true", help="only ridge beyond memory")
    parser.add_argument("--only-pca", action="store_true", help="only PCA beyond memory")
    parser.add_argument(
        "--only-fourier", action="store_true", help="only points in the plane, by cufinufft"
    )
    parser.add_argument(
        "--only-tables", action="store_true", help="only kin40k, from MERCER_BENCH_DATA"
    )
    parser.add_argument(
        "--only-machines", action="store_true", help="only KernelSVC and KernelLogistic on digits"
    )
    options = parser.parse_args(argv)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)  # fails before the work, not after it
    device = torch.device("cuda")
    table = Table()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    everything = not any(value for name, value in vars(options).items() if name.startswith("only"))
    if everything:
        X, y, Z, labels = digits(options.mnist, options.n)
        floor = floors(table, torch, device, X)
        map_and_ridge(table, torch, device, X, y, Z, labels, floor)
        leading(table, torch, device, X)
        rows_through_a_map(table, torch, device)
        if not options.skip_cpu:
            against_cpu(table, torch, device, X)
    if everything or options.only_pca:
        leading_beyond_memory(table, torch, device)
    if everything or options.only_ridge:
        beyond_memory(table, torch, device)
    if options.only_fourier:  # needs the extra fourier-gpu
        points_in_the_plane(table, torch, device)
    if options.only_tables:
        learned_from_a_table(table, torch, device)
    if everything or options.only_machines:
        digits_by_machines(table, torch, device, *digits(options.mnist, options.n), options.mnist)
    if options.output:
        (options.output / "gpu.json").write_text(json.dumps(table.lines, indent=1))


def learned_from_a_table(table, torch, device):
    """KernelRegressor on kin40k, everything learned and chosen on the GPU."""
    from mercer import KernelRegressor

    from . import tables

    X, y, X_test, y_test = tables.uci("kin40k")

    def learned():
        A, b, C = (torch.as_tensor(a, dtype=torch.float32, device=device) for a in (X, y, X_test))
        return KernelRegressor().fit(A, b).predict(C).cpu().numpy()

    best, median, p = timed(learned)
    error = float(np.sqrt(np.mean((p.ravel() - y_test.ravel()) ** 2)))
    table.add("KernelRegressor on kin40k, first split", best, median, f"RMSE {error:.4f}")


def floors(table, torch, device, X):
    """The kernel's matrix product and the Cholesky factorisation, bare."""
    n, d = X.shape
    A = torch.as_tensor(X, device=device)
    out = torch.empty((n, n), dtype=torch.float64, device=device)
    product, median, _ = timed(lambda: torch.matmul(A, A.T, out=out))
    table.add(
        f"floor: product {n} x {n} x {d}",
        product,
        median,
        f"{2 * n * n * d / product / 1e12:.1f} TFLOP/s",
    )
    out.diagonal().add_(float(n))
    potrf, median, _ = timed(lambda: torch.linalg.cholesky_ex(out))
    table.add(f"floor: Cholesky n = {n}", potrf, median, f"{n**3 / 3 / potrf / 1e12:.1f} TFLOP/s")
    return product + potrf


def map_and_ridge(table, torch, device, X, y, Z, labels, floor):
    from mercer import KernelMap, KernelRidge

    kernel, targets = k2(X.shape[1]), np.eye(10)[y]

    def exact_map():
        return KernelMap(kernel).fit(torch.as_tensor(X, device=device)).rank_

    best, median, rank = timed(exact_map)
    table.add(
        f"exact map of {len(X)} digits, kernel k2",
        best,
        median,
        f"rank {rank}, {best / floor:.2f} x floor",
    )

    def ridge():
        model = KernelRidge(1e-3, kernel, form="dual")
        model.fit(torch.as_tensor(X, device=device), torch.as_tensor(targets, device=device))
        return model.predict(torch.as_tensor(Z, device=device)).cpu().numpy()

    best, median, scores = timed(ridge)
    error = float(np.mean(scores.argmax(axis=1) != labels))
    table.add(
        f"ridge on {len(X)} digits, host array to test predictions",
        best,
        median,
        f"test error {100 * error:.2f} %, {best / floor:.2f} x floor",
    )


def digits_by_machines(table, torch, device, X, y, Z, labels, real):
    """Ten classes: 45 support vector machines, and one logistic regression of ten functions.

    By k2, which separates the digits whatever C is, and by its square, which suits them better.
    """
    from mercer import KernelLogistic, KernelSVC, Polynomial
    from mercer.engine.arrays import as_numpy

    X, Z = shifted(X), shifted(Z)
    what = "digits" if real else "generated images"
    for power, method in [(p, m) for p in (1, 2) for m in (KernelSVC, KernelLogistic)]:
        kernel = Polynomial(9 * power, gamma=0.5 / X.shape[1], coef0=0.5)  # of rows shifted here

        def fitted(method=method, kernel=kernel):
            model = method(100.0, kernel).fit(torch.as_tensor(X, device=device), y)
            return model, model.predict(torch.as_tensor(Z, device=device))

        best, median, (model, predicted) = timed(fitted, repeats=1)
        accuracy = float(np.mean(as_numpy(predicted) == labels))
        gap = float(np.max(as_numpy(model.gap_)))
        sure = float(np.mean(as_numpy(model.certain(torch.as_tensor(Z, device=device)))))
        remark = f"accuracy {accuracy:.4f}, gap {gap:.2g}, {100 * sure:.1f} % certain"
        table.add(
            f"{method.__name__} on {len(X)} {what}, k2 ** {power}, C = 100",
            best,
            median,
            f"{remark}, {model.n_iter_} steps" + ("" if model.converged_ else ", not converged"),
        )


def leading(table, torch, device, X):
    from mercer import KernelPCA
    from mercer.space.spectra import Eigenpairs

    kernel = k2(X.shape[1])
    best, median, _ = timed(lambda: KernelPCA(50, kernel).fit(torch.as_tensor(X, device=device)))
    table.add(f"KernelPCA, leading 50 of {len(X)}", best, median)
    A = torch.as_tensor(X, device=device)
    best, median, pairs = timed(lambda: Eigenpairs.leading(kernel.bind(A), A, 50, tol=1e-8))
    worst = float((pairs.residuals / pairs.values[0]).max())
    table.add("  the same to residual 1e-8", best, median, f"largest residual {worst:.1e}")


def leading_beyond_memory(table, torch, device, check=20_000, n=200_000):
    """The Krylov solver with fused products: against the stored matrix, and where none fits."""
    from mercer import RBF, KernelPCA
    from mercer.engine import using
    from mercer.space.spectra import Eigenpairs

    kernel = RBF(0.05)
    for dtype in (torch.float64, torch.float32):
        X = torch.as_tensor(wavy(check)[0], device=device).to(dtype)
        stored, median, pairs = timed(lambda X=X: Eigenpairs.leading(kernel, X, 20), 2)
        table.add(f"leading 20 of {check} x 10, {dtype}, K stored", stored, median)
        limit = check * check * X.element_size() - 1
        with using(memory_limit=limit):
            best, median, fused = timed(lambda X=X: Eigenpairs.leading(kernel, X, 20), 2)
        worst = float((fused.values - pairs.values).abs().max() / pairs.values[0])
        table.add(
            "  the same by fused products", best, median, f"eigenvalues differ by {worst:.1e}"
        )
    X = torch.as_tensor(wavy(n)[0], device=device)
    best, median, model = timed(lambda: KernelPCA(20, kernel, solver="krylov").fit(X), 1)
    total = 4 * n * n / 1e9
    remark = f"K would take {total:.0f} GB; first eigenvalue {float(model.eigenvalues_[0]):.5g}"
    table.add(f"KernelPCA, leading 20 of {n} x 10, float32, fused", best, median, remark)


def rows_through_a_map(table, torch, device, n=1_000_000, d=784, m=5000):
    from mercer import RBF, KernelMap

    generator = torch.Generator(device=device).manual_seed(0)
    S = torch.randn((m, d), dtype=torch.float64, device=device, generator=generator)
    X = torch.randn((n, d), dtype=torch.float64, device=device, generator=generator)
    kernel_map = KernelMap(RBF(1 / d)).fit(S)
    W = torch.randn((m, m), dtype=torch.float64, device=device, generator=generator)
    step = 100_000

    def floor():
        for a in range(0, n, step):
            (X[a : a + step] @ S.T) @ W

    best_floor, median, _ = timed(floor)
    table.add(f"floor: {n} x {d} by {d} x {m} by {m} x {m}", best_floor, median)

    def through():
        for a in range(0, n, step):
            kernel_map.transform(X[a : a + step])

    best, median, _ = timed(through)
    table.add(
        f"{n} rows through a map of {m} landmarks", best, median, f"{best / best_floor:.2f} x floor"
    )
    coef = torch.randn((kernel_map.rank_, 50), dtype=torch.float64, device=device)

    def projected():
        for a in range(0, n, step):
            kernel_map.project(X[a : a + step], coef)

    best, median, _ = timed(projected)
    table.add("  the same to 50 outputs, fused", best, median)


def wavy(n, d=10, new=10_000):
    """Standard normal rows, a function of six columns, noise 0.1; and new rows without noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + new, d)).astype(np.float32)
    f = np.sin(X[:, 0] + X[:, 1]) + 0.5 * np.cos(1.5 * X[:, 2]) * X[:, 3]
    f = f + 0.5 * np.sin(X[:, 4] * X[:, 5])
    return X[:n], f[:n] + 0.1 * rng.standard_normal(n), X[n:], f[n:]


def beyond_memory(table, torch, device):
    """Fused products, and ridge solved to a certified accuracy without the kernel matrix."""
    from mercer import KernelMap, KernelRidge, Matern
    from mercer.engine.fused import FusedProduct

    kernel = Matern(2.5, 3.0)
    for exact, n in ((False, 500_000), (True, 200_000)):
        X = torch.as_tensor(wavy(n)[0], device=device)
        v = torch.randn(n, 1, device=device, dtype=torch.float64)
        product = FusedProduct(kernel.fused_form(), X, exact=exact)
        best, median, _ = timed(lambda product=product, v=v: product(v))
        what = "float64" if exact else "float32"
        rate = f"{n * n / best:.2e} kernel values per second"
        table.add(f"fused product, {n} x 10, Matern-5/2, {what}", best, median, rate)
    for n, rank in ((100_000, None), (1_000_000, 4000)):
        X, y, Z, f = wavy(n)

        def ridge(X=X, y=y, Z=Z, rank=rank):
            model = KernelRidge(
                1.0,
                KernelMap(kernel, max_rank=rank, pivots="random", random_state=0),
                form="iterative",
                tol=7e-4,
            )
            model.fit(torch.as_tensor(X, device=device), torch.as_tensor(y, device=device))
            return model, model.predict(torch.as_tensor(Z, device=device)).cpu().numpy()

        best, median, (model, predicted) = timed(ridge, 2)
        rmse = float(np.sqrt(np.mean((predicted - f) ** 2)))
        table.add(
            f"exact ridge on {n} x 10, alpha 1, host array to test predictions",
            best,
            median,
            f"RMSE {rmse:.4f}, {model.n_iter_} products, residual "
            f"{residual(torch, kernel, model, X, y):.1e}, certified error "
            f"{float(model.error_norms_[0]):.2g}, rank {model.preconditioner_rank_}",
        )
        landmarks = KernelMap(kernel, max_rank=2000, pivots="random", random_state=0)

        def truncated(X=X, y=y, Z=Z, landmarks=landmarks):
            model = KernelRidge(1.0, landmarks)
            model.fit(torch.as_tensor(X, device=device), torch.as_tensor(y, device=device))
            return model.predict(torch.as_tensor(Z, device=device)).cpu().numpy()

        best, median, predicted = timed(truncated, 1)
        rmse = float(np.sqrt(np.mean((predicted - f) ** 2)))
        table.add("  2000 landmarks alone", best, median, f"RMSE {rmse:.4f}")


def points_in_the_plane(table, torch, device):
    """Ridge in Fourier coordinates and a prediction for every row, points on the device."""
    from mercer import RBF, KernelMap, KernelRidge

    def model():
        return KernelRidge(1.0, KernelMap(RBF(50.0), basis="fourier", tol=1e-8))

    def draw(n):
        X = torch.rand(n, 2, device=device, dtype=torch.float64)
        noise = torch.randn(n, device=device, dtype=torch.float64)
        return X, (torch.sin(8 * X[:, 0]) * torch.cos(6 * X[:, 1]) + noise).cpu().numpy()

    X, y = draw(3000)
    exact = KernelRidge(1.0, RBF(50.0), form="dual").fit(X.cpu().numpy(), y)
    apart = model().fit(X, y).predict(X).cpu().numpy() - exact.predict(X.cpu().numpy())
    print(f"3000 points: {np.abs(apart).max():.1e} from the exact answer")
    for n in (10**6, 10**7, 10**8):
        X, y = draw(n)
        best, median, fitted = timed(lambda X=X, y=y: model().fit(X, y), 2)
        table.add(f"fit of {n:.0e} points in the plane", best, median)
        best, median, _ = timed(lambda X=X, fitted=fitted: fitted.predict(X), 2)
        table.add("  as many predictions", best, median)


def residual(torch, kernel, model, X, y):
    """|y - (K + alpha I) a| / |y|, in double precision."""
    from mercer.engine.fused import FusedProduct

    a = model.dual_coef_.reshape(-1, 1)
    t = torch.as_tensor(y, device=a.device).to(torch.float64)[:, None]
    product = FusedProduct(kernel.fused_form(), torch.as_tensor(X, device=a.device), exact=True)
    return float((t - product(a) - model.alpha * a).norm() / t.norm())


def against_cpu(table, torch, device, X, n=10_000):
    from sklearn.decomposition import KernelPCA as SklearnPCA

    from mercer import RBF, KernelPCA

    X = X[:n]
    gamma = 1 / (X.shape[1] * X.var())
    best, median, _ = timed(
        lambda: KernelPCA(50, RBF(gamma)).fit(torch.as_tensor(X, device=device)).eigenvalues_.cpu()
    )
    table.add(f"KernelPCA, leading 50 of {n}", best, median)
    for solver in ("arpack", "randomized"):
        start = time.perf_counter()
        SklearnPCA(50, kernel="rbf", gamma=gamma, eigen_solver=solver, random_state=0).fit(X)
        elapsed = time.perf_counter() - start
        table.add(
            f"  scikit-learn on the CPU, {solver}",
            elapsed,
            elapsed,
            f"{elapsed / best:.0f} x mercer's",
        )


if __name__ == "__main__":
    main()
