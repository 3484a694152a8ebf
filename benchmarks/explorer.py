"""`python -m benchmarks.explorer [--points 2000 20000] [--moves 25]`: from slider to picture.

A real browser moves the slider of RBF's gamma by keys; the page measures from the key to the frame
that shows the new picture, as the person at the keyboard would. Medians in milliseconds, beside
the processor time of the coarse step alone, which does not depend on what else the machine does.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import time

import numpy as np

GOALS = {2000: 150, 20000: 500}


def data(n, d=20, classes=5, seed=0):
    """Clusters of different shapes, one per class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    centres = 2.0 * rng.normal(size=(classes, d))
    scales = rng.uniform(0.5, 1.5, size=(classes, d))
    return centres[y] + scales[y] * rng.normal(size=(n, d)), y


def coarse_step(n, moves=10):
    """Processor milliseconds of the session's first frame after a turn of the knob."""
    from mercer import RBF
    from mercer.explore.live.data import Explored
    from mercer.explore.live.session import Session

    X, y = data(n)
    session = Session(Explored.of(X, y.astype(str), RBF()), RBF())
    list(session.answer({"do": "hello"}))
    (knob,) = session.knobs
    spent = []
    for value in knob.value * np.geomspace(0.3, 3, moves):
        start = time.process_time()
        next(session.answer({"do": "turn", "knob": "gamma", "value": float(value)}))
        spent.append(1e3 * (time.process_time() - start))
    return statistics.median(spent)


def in_the_browser(n, moves):
    """Milliseconds from a key press on the slider to the picture on the screen, each move."""
    from playwright.sync_api import sync_playwright

    from mercer import RBF
    from mercer.explore import explore

    X, y = data(n)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    arguments = ["--no-sandbox", "--disable-quic", "--disable-background-networking"]
    with (
        explore(X, y.astype(str), RBF(), max_points=n) as explorer,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport={"width": 1366, "height": 860})
        page.set_default_timeout(180_000)
        page.goto(explorer.url)
        page.wait_for_selector("html[data-ready=true]")
        rests = "!document.querySelector('#status').classList.contains('busy')"
        page.wait_for_function(rests)
        page.locator(".knob input").first.focus()
        for move in range(moves):
            page.keyboard.press("ArrowLeft" if move < moves // 2 else "ArrowRight")
            page.wait_for_function(f"window.mercerTiming.length > {move}")
        times = page.evaluate("window.mercerTiming")
        browser.close()
    return times


def main(argv=None):
    parser = argparse.ArgumentParser(prog="benchmarks.explorer", description=__doc__)
    parser.add_argument("--points", type=int, nargs="+", default=[2000, 20000])
    parser.add_argument("--moves", type=int, default=25)
    options = parser.parse_args(argv)
    rows = []
    for n in options.points:
        times = in_the_browser(n, options.moves)
        row = {
            "points": n,
            "median_ms": round(statistics.median(times), 1),
            "worst_ms": round(max(times), 1),
            "goal_ms": GOALS.get(n),
            "coarse_step_cpu_ms": round(coarse_step(n), 1),
            "load": round(os.getloadavg()[0], 1),
        }
        rows.append(row)
        print(json.dumps(row))
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
