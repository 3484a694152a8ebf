"""`make release`: build the package, install it where nothing is, and try what people try first.

1. sdist and wheel, built in isolation; twine reads their descriptions.
2. The wheel alone, with nothing but the core dependencies: import, a map, a ridge, a refusal that
   names its extra, README's Python without tables.
3. With [cli]: README from top to bottom, its commands among it (fit, predict, compare).
4. With [test]: tests of the unpacked sdist against the installed wheel; all of them with --whole.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
MOST_BYTES = 1_000_000
MOST_IMPORT_SECONDS = 3.0
# A quick part of the tests: the API, the laws of the first kernels, maps, files, the command.
SOME_TESTS = [
    *("tests/test_public_api.py", "tests/test_project_files.py", "tests/export/test_trust.py"),
    *("tests/kernels/test_stationary.py", "tests/estimators/test_kernel_map.py"),
]

CORE = """
import numpy as np
import mercer
from mercer import RBF, KernelMap, KernelRidge, load, save, to_onnx

assert "site-packages" in mercer.__file__, mercer.__file__
X = np.random.default_rng(0).normal(size=(100, 2))
space = KernelMap(RBF(0.5)).fit(X)
Phi = space.transform(X)
assert np.abs(Phi @ Phi.T - RBF(0.5)(X)).max() < 1e-10
ridge = KernelRidge(0.1, RBF(0.5)).fit(X, X[:, 0])
save(ridge, "ridge.mercer")
assert np.array_equal(load("ridge.mercer").predict(X), ridge.predict(X))
try:
    to_onnx(ridge)
except ImportError as refusal:
    assert "mercer[onnx]" in str(refusal), refusal
    print("refused:", refusal)
else:
    raise AssertionError("to_onnx works without its extra: is this environment empty?")
"""


def main():
    """Every step in turn; the first that fails ends the run."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--whole", action="store_true", help="run all tests of the sdist")
    options.add_argument("--tag", help="the tag that is published: v and the version")
    given = options.parse_args()
    if given.tag is not None and (missing := list(unfinished(given.tag))):
        sys.exit("\n".join(["not ready to be published:", *missing]))
    wheel, sdist = build()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        python = installed(work, wheel)
        try_core(python, work)
        try_commands(python, work, wheel)
        try_tests(python, work, wheel, sdist, given.whole)
    print(f"\n{wheel.name} and {sdist.name} are in {DIST.name}/")


def unfinished(tag, root=ROOT):
    """What whoever publishes has yet to write, in words."""
    names = ("pyproject.toml", "CITATION.cff", "README.md", "docs/start.md")
    texts = {name: (root / name).read_text(encoding="utf-8") for name in names}
    project = tomllib.loads(texts["pyproject.toml"])["project"]
    if tag != f"v{project['version']}":
        yield f"the tag {tag} is not v{project['version']}, the version of pyproject.toml"
    if not any(project.get("urls", {}).values()):
        yield "pyproject.toml: [project.urls] has no address of the repository"
    for key in ("repository-code", "date-released"):
        if not re.search(rf"^{key}: *\S", texts["CITATION.cff"], re.MULTILINE):
            yield f"CITATION.cff: no {key}"
    for name, text in texts.items():
        if "not on PyPI yet" in text:
            yield f"{name}: says that mercer is not on PyPI yet"


def build():
    """(wheel, sdist), built from a copy of the sources, with descriptions that indexes can read."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    limit("size of the wheel", wheel.stat().st_size, MOST_BYTES, "bytes")
    return wheel, sdist


def installed(work, wheel):
    """The Python of an empty environment with the wheel and its core dependencies."""
    run(sys.executable, "-m", "venv", work / "empty")
    python = work / "empty" / SCRIPTS / "python"
    pip(python, wheel)
    return python


def try_core(python, work):
    """Seconds for the import, one use of each main thing, and README without tables."""
    seconds = min(import_seconds(python) for _ in range(3))
    limit("import mercer", round(seconds, 2), MOST_IMPORT_SECONDS, "s")
    run(python, "-c", CORE, cwd=work)
    for code in readme("python"):
        if "table" not in code:
            run(python, "-c", code, cwd=work)


def import_seconds(python):
    """CPU seconds that the import takes, over those of Python alone."""
    measure = "import time; start = time.process_time(); import mercer; "
    measure += "print(time.process_time() - start)"
    return float(subprocess.run([python, "-c", measure], check=True, capture_output=True).stdout)


def try_commands(python, work, wheel):
    """README from top to bottom, as someone with [cli] would."""
    pip(python, f"{wheel}[cli]")
    folder = work / "readme"
    folder.mkdir()
    names: list[str] = []  # Python blocks of a page share their names
    tried: list[str] = []
    written: list[str] = []
    for language, code in blocks():
        if language == "python":
            names.append(code)
            run(python, "-c", "\n".join(names), cwd=folder)
        else:
            for line in code.splitlines():
                command, *rest = shlex.split(line, comments=True) or [""]
                if command == "mercer":
                    run(python, "-m", "mercer", *rest, cwd=folder)
                    tried.append(rest[0])
                    written += [rest[i + 1] for i, word in enumerate(rest) if word == "-o"]
    if not {"fit", "predict", "compare"} <= set(tried):
        sys.exit(f"README runs {tried} only: fit, predict and compare are to be tried")
    for name in [*written, "report.html"]:
        if not (folder / name).exists():
            sys.exit(f"README's commands left no {name}")


def try_tests(python, work, wheel, sdist, whole):
    """Tests of the sdist, which import the installed wheel."""
    pip(python, f"{wheel}[test,cli]")
    with tarfile.open(sdist) as archive:
        archive.extractall(work, filter="data")
    folder = work / sdist.name.removesuffix(".tar.gz")
    chosen = ["tests", "-n", "2", "--dist=worksteal"] if whole else SOME_TESTS
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, cwd=folder)


def blocks():
    """(language, code) of README's blocks, in order."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```(python|sh)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def readme(language):
    """The code of README's blocks in a language."""
    return [code for name, code in blocks() if name == language]


def limit(what, value, most, unit):
    """Print a number beside its limit, and stop above it."""
    print(f"{what}: {value} {unit} (limit {most})")
    if value > most:
        sys.exit(f"{what} is over its limit")


def pip(python, *packages):
    run(python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages)


def run(*command, cwd=None):
    """Run a command, and say what it was and how long it took."""
    shown = " ".join(str(part) if "\n" not in str(part) else "..." for part in command)
    print(f"$ {shown}", flush=True)
    start = time.monotonic()
    if subprocess.run([str(part) for part in command], cwd=cwd).returncode:
        sys.exit(f"failed: {shown}")
    print(f"  {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
