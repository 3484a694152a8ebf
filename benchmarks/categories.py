"""A column of categories with many values: error and time beside boosting that splits by value."""

import numpy as np

from .harness import row


def _mercer(data):
    from mercer import KernelRegressor

    X, y, Z, _ = data
    return lambda: KernelRegressor().fit(X, y).predict(Z)


def _boosting(data):
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.preprocessing import OrdinalEncoder

    X, y, Z, _ = data
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    codes.fit(X[["town"]])
    X, Z = (table.assign(town=codes.transform(table[["town"]])[:, 0]) for table in (X, Z))
    model = HistGradientBoostingRegressor(categorical_features=["town"], random_state=0)
    return lambda: model.fit(X, y).predict(Z)


@row(
    title="5000 rows, 200 towns with an effect each, noise 0.3",
    contenders={"mercer": _mercer, "HistGradientBoosting, categorical": _boosting},
    accuracy=lambda data, p: {"rmse": float(np.sqrt(np.mean((p - data[3]) ** 2)))},
    repeats=1,
    rounds=1,
)
def many_categories(quick):
    import pandas as pd

    rng = np.random.default_rng(0)
    effects = 1.5 * rng.normal(size=200)
    n = 5000
    x, town = rng.normal(size=(n + 2000, 3)), rng.integers(200, size=n + 2000)
    y = np.sin(2 * x[:, 0]) + x[:, 1] + effects[town] + 0.3 * rng.normal(size=n + 2000)
    table = pd.DataFrame(x, columns=["a", "b", "c"])
    table["town"] = [f"T{7919 * i % 9973}" for i in town]
    return table[:n], y[:n], table[n:], y[n:]
