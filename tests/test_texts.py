"""How kernels look inside estimators and in notebooks: as the expressions that they are."""

import ast
import re
from pathlib import Path

import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import mercer
from mercer import (
    RBF,
    FromFunction,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRidge,
    Linear,
    Matern,
    Normalized,
    OnColumns,
    Polynomial,
)

SUM = RBF() + Linear()
LONG = sum((RBF(10.0**i) * Polynomial(i + 1) for i in range(12)), start=Linear())


def one_line(text):
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(
    ("estimator", "text"),
    [
        (KernelMap(SUM), "KernelMap(kernel=RBF() + Linear())"),
        (KernelMap(SUM, max_rank=5), "KernelMap(kernel=RBF() + Linear(), max_rank=5)"),
        (KernelPCA(2, 2 * SUM), "KernelPCA(kernel=2 * (RBF() + Linear()), n_components=2)"),
        (KernelPCAL1(kernel=Linear() ** 2), "KernelPCAL1(kernel=Linear() ** 2)"),
        (KernelRidge(0.1, SUM.exp()), "KernelRidge(alpha=0.1, kernel=(RBF() + Linear()).exp())"),
        (
            KernelDiscriminant(kernel=OnColumns(RBF(), [0, 1]) * Matern()),
            "KernelDiscriminant(kernel=OnColumns(RBF(), [0, 1]) * Matern())",
        ),
        (
            KernelRidge(kernel=KernelMap(Normalized(SUM), max_rank=9)),
            "KernelRidge(kernel=KernelMap(kernel=Normalized(kernel=RBF() + Linear()), max_rank=9))",
        ),
        (
            Kernelized(LogisticRegression(C=2.0), SUM),
            "Kernelized(estimator=LogisticRegression(C=2.0), kernel=RBF() + Linear())",
        ),
        (
            make_pipeline(StandardScaler(), KernelMap(RBF(0.5) * Linear())),
            "Pipeline(steps=[('standardscaler', StandardScaler()), "
            "('kernelmap', KernelMap(kernel=RBF(gamma=0.5) * Linear()))])",
        ),
        (
            GridSearchCV(KernelRidge(), {"kernel": [SUM, RBF(2.0)]}),
            "GridSearchCV(estimator=KernelRidge(), "
            "param_grid={'kernel': [RBF() + Linear(), RBF(gamma=2.0)]})",
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_kernel_prints_as_its_expression(estimator, text):
    assert one_line(repr(estimator)) == text


def test_a_long_expression_is_whole():
    assert repr(LONG) in one_line(repr(KernelMap(LONG)))
    assert eval(repr(LONG), vars(mercer)) == LONG


def test_every_parameter_is_shown_on_demand():
    with sklearn.config_context(print_changed_only=False):
        text = one_line(repr(KernelMap(SUM)))
    assert "kernel=RBF() + Linear(), max_rank=None" in text


@pytest.mark.parametrize("kernel", [SUM, 2 * SUM, SUM**2, RBF(0.5), Normalized(SUM)], ids=repr)
def test_a_kernel_in_a_notebook(kernel):
    html = kernel._repr_html_()
    assert repr(kernel) in html
    assert "Parameters" not in html
    assert "Not fitted" not in html


def test_html_is_escaped():
    assert "<lambda>" not in FromFunction(lambda a, b: 1.0)._repr_html_()


@pytest.mark.parametrize(
    "kernel", [SUM, KernelMap(SUM, max_rank=5)], ids=["a kernel", "a configured map"]
)
@pytest.mark.parametrize("fitted", [False, True], ids=["not fitted", "fitted"])
def test_the_diagram_of_kernelized_shows_its_kernel(kernel, fitted):
    model = Kernelized(LogisticRegression(C=0.123), kernel)
    if fitted:
        model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    html = estimator_html_repr(model)
    boxes = re.findall(r"<label[^>]*>(.*?)</label>", html, re.DOTALL)
    texts = [one_line(re.sub(r"<[^>]+>", " ", box)) for box in boxes]
    assert any(repr(kernel) in text for text in texts), texts
    assert any("LogisticRegression" in text for text in texts), texts


def test_the_diagram_by_a_name_shows_the_kernel_behind_it():
    html = estimator_html_repr(Kernelized(LogisticRegression(), "rbf"))
    assert "RBF()" in html


def test_diagrams_of_all_others_hold_the_expression():
    for estimator in (KernelMap(SUM), KernelPCA(2, SUM), make_pipeline(KernelMap(SUM))):
        assert "RBF() + Linear()" in one_line(estimator_html_repr(estimator))


def test_without_visual_blocks_the_diagram_is_scikit_learns_own(monkeypatch):
    monkeypatch.setattr("mercer.engine.sklearn_compat._VisualBlock", None)
    assert "LogisticRegression" in estimator_html_repr(Kernelized(LogisticRegression()))


# --- scikit-learn's protocol, without its base class ----------------------------------------------


def test_parameters_are_set_whole_before_nested_ones():
    k = RBF(1.0) + Linear()
    k.set_params(left__gamma=5.0, left=RBF(2.0))
    assert k == RBF(5.0) + Linear()
    deep = (RBF(1.0) + Linear()) * Linear()
    deep.set_params(left__left__gamma=7.0, left__left=RBF(3.0))
    assert deep.left.left == RBF(7.0)
    assert k.set_params() is k


def test_unknown_parameters_are_named():
    with pytest.raises(ValueError, match=r"Invalid parameter 'gama' for estimator RBF\(\)"):
        RBF().set_params(gama=1.0)
    with pytest.raises(ValueError, match=r"Valid parameters are: \['left', 'right'\]"):
        SUM.set_params(gamma=1.0)


def test_clones_are_copies():
    k = clone(SUM)
    assert k == SUM
    assert k.left is not SUM.left


ROOT = Path(mercer.__file__).parent


def test_private_names_of_scikit_learn_stand_in_one_file():
    found = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                parts = [*node.module.split("."), *(alias.name for alias in node.names)]
                if any(part.startswith("_") for part in parts):
                    found.add(path.relative_to(ROOT).as_posix())
    assert found == {"engine/sklearn_compat.py"}
