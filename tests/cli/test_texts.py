"""Columns of text in the command: string kernels see them, or a note says what became of them."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer", reason="typer is not installed: mercer[cli]")
pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")


pytestmark = pytest.mark.usefixtures("few_trees")

FAST = ["--cv", "2", "--json", "--max-points", "60"]


@pytest.fixture
def dna(tmp_path):
    """Half of the sequences contain a word; a name and a number say nothing."""
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("ACGT"), size=40)) for _ in range(60)]
    texts = [s[:17] + "TATAAT" + s[23:] if i % 2 else s for i, s in enumerate(texts)]
    frame = pd.DataFrame({"name": [f"seq{i}" for i in range(60)], "sequence": texts})
    frame["weight"] = rng.normal(size=60)
    frame["promoter"] = np.where(np.arange(60) % 2, "yes", "no")
    frame.to_csv(tmp_path / "dna.csv", index=False)
    return frame


def test_a_string_kernel_sees_the_column_of_texts(run, dna, tmp_path):
    kernels = ["-k", "Spectrum(4, normalize=True)", "-k", "Spectrum(1)"]
    code, out, _ = run(
        "compare", "dna.csv", "-t", "promoter", *kernels, "--save", "m.mercer", *FAST
    )
    answer = json.loads(out)
    assert code == 0
    assert answer["kernels"][0]["kernel"] == "Spectrum(4, normalize=True)"
    assert "logistic regression on n-grams" in [b["model"] for b in answer["baselines"]]
    assert any("'sequence'" in n and "name, weight" in n for n in answer["notes"])
    assert run("predict", "m.mercer", "dna.csv", "-o", "p.csv")[0] == 0
    predicted = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert np.mean(predicted == dna["promoter"]) > 0.8


def test_texts_alone_are_compared_by_string_kernels(run, dna, tmp_path):
    dna[["name", "sequence", "promoter"]].to_csv(tmp_path / "alone.csv", index=False)
    code, out, _ = run("compare", "alone.csv", "-t", "promoter", *FAST)
    answer = json.loads(out)
    assert code == 0
    assert all(k["kernel"].startswith("Spectrum(") for k in answer["kernels"])
    assert any("string kernels compare them" in note for note in answer["notes"])


def test_texts_beside_numbers(run, dna):
    both = "OnColumns(Spectrum(4), 'sequence') + OnColumns(RBF(0.5), ['weight'])"
    code, out, _ = run(
        "compare", "dna.csv", "-t", "promoter", "-k", both, "--save", "m.mercer", *FAST
    )
    answer = json.loads(out)
    assert code == 0
    kinds = {column["name"]: column["kind"] for column in answer["columns"]}
    assert kinds == {"name": "identifier", "sequence": "kept", "weight": "number"}
    models = [baseline["model"] for baseline in answer["baselines"]]
    assert "logistic regression on n-grams and numbers" in models
    assert run("predict", "m.mercer", "dna.csv", "-o", "p.csv")[0] == 0
    made = {"X": dna.drop(columns="promoter"), "y": dna["promoter"]}
    exec(answer["code"], made)
    assert set(made["model"].predict(made["X"])) <= {"yes", "no"}


@pytest.mark.parametrize("both", [False, True])
def test_new_texts_of_digits_or_without_a_value(run, both, tmp_path):
    """A file of few rows may have digits alone in a column of texts: they are texts there, too."""
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("01x"), size=12)) for _ in range(38)] + ["101101", "110010"]
    frame = pd.DataFrame({"s": texts, "x": rng.normal(size=40)})
    frame["y"] = [text.count("01") + 0.5 for text in texts]
    kernel = "OnColumns(Spectrum(2), 's') + OnColumns(RBF(0.5), ['x'])" if both else "Spectrum(2)"
    columns = ["s", "x", "y"] if both else ["s", "y"]
    frame[columns].to_csv(tmp_path / "t.csv", index=False)
    made = run("compare", "t.csv", "-t", "y", "-k", kernel, "--save", "m.mercer", *FAST)
    assert made[0] == 0
    trusted = ["sklearn.compose.ColumnTransformer", "sklearn.feature_extraction.text"]
    trusted[1] += ".TfidfVectorizer"
    options = [option for name in trusted for option in ("--trusted", name)]
    frame[38:].to_csv(tmp_path / "digits.csv", index=False)
    frame[:1].assign(s="").to_csv(tmp_path / "gap.csv", index=False)
    found = {}
    for name in ("t", "digits", "gap"):
        assert run("predict", "m.mercer", f"{name}.csv", "-o", "p.csv", *options)[0] == 0
        found[name] = pd.read_csv(tmp_path / "p.csv")["prediction"]
    np.testing.assert_allclose(found["digits"], found["t"][38:])
    assert np.isfinite(found["gap"]).all()


def test_fit_names_the_command_that_takes_a_string_kernel(run, dna):
    code, _, err = run("fit", "dna.csv", "-t", "promoter", "-k", "Spectrum(3)", "-o", "m.mercer")
    assert code == 2
    assert "Spectrum() compares texts" in err
    assert "mercer compare takes it" in err


def test_without_a_kernel_texts_become_ngrams_and_a_note_names_the_other_way(run, dna):
    code, out, _ = run("compare", "dna.csv", "-t", "promoter", *FAST)
    answer = json.loads(out)
    assert code == 0
    kinds = {column["name"]: column["kind"] for column in answer["columns"]}
    assert kinds["sequence"] == "text"
    assert any("OnColumns(Spectrum(3), 'sequence')" in note for note in answer["notes"])


def test_coordinates_and_validity_of_texts(run, dna, tmp_path):
    assert run("check", "dna.csv", "-t", "promoter", "-k", "Spectrum(3)")[0] == 0
    code, _, _ = run("map", "dna.csv", "-t", "promoter", "-k", "Spectrum(3)", "-o", "c.csv")
    assert code == 0
    assert len(pd.read_csv(tmp_path / "c.csv")) == 60


@pytest.mark.parametrize(
    ("kernels", "words"),
    [
        (["Spectrum(4)", "RBF()"], ["compares texts and RBF", "OnColumns(Spectrum(length=4)"]),
        (["Spectrum(4)"], ["several columns hold text: a, b", "OnColumns(Spectrum(length=4), 'a'"]),
    ],
)
def test_what_cannot_be_decided_is_asked(run, kernels, words, tmp_path):
    table = pd.DataFrame({"a": ["xx", "yy"] * 20, "b": ["uu", "v"] * 20, "t": [0, 1] * 20})
    table.to_csv(tmp_path / "two.csv", index=False)
    code, _, err = run("compare", "two.csv", "-t", "t", *[a for k in kernels for a in ("-k", k)])
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    for word in words:
        assert word in err
