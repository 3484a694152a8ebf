"""`python -m benchmarks.explorer [--points 2000 20000] [--moves 25] [--rests 5]`: slider, picture.

A real browser moves the slider of RBF's gamma by keys. The page measures from the key to the frame
after the one that shows the new picture, as the person at the keyboard would:

- moving: each key as soon as the picture of the last one is there; the picture is the first look,
  of at most 2000 rows and on 100 landmarks;
- after a rest: the first look after everything had come to rest;
- all points: from a single key to the picture of all rows on up to 500 landmarks.

Medians in milliseconds, beside the processor time of the first look alone, which does not depend on
what else the machine does.
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
RESTS = "!document.querySelector('#status').classList.contains('busy')"


def data(n, d=20, classes=5, seed=0):
    """Clusters of different shapes, one per class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    centres = 2.0 * rng.normal(size=(classes, d))
    scales = rng.uniform(0.5, 1.5, size=(classes, d))
    return centres[y] + scales[y] * rng.normal(size=(n, d)), y


def first_look(n, moves=10):
    """Processor milliseconds of the session's first picture after a turn of the knob."""
    from mercer import RBF
    from mercer.explore.data import Explored
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


def in_the_browser(n, moves, rests):
    """{"moving", "after a rest", "all points"}: milliseconds of each move."""
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
        page.wait_for_function(RESTS)
        page.locator(".knob input").first.focus()
        for move in range(moves):
            page.keyboard.press("ArrowLeft" if move < moves // 2 else "ArrowRight")
            page.wait_for_function(f"window.mercerTiming.length > {move}")
        page.wait_for_function("window.mercerFullTiming.length > 0")
        for rest in range(rests):
            page.wait_for_function(RESTS)
            page.keyboard.press("ArrowLeft" if rest % 2 else "ArrowRight")
            page.wait_for_function(f"window.mercerFullTiming.length > {rest + 1}")
        first, whole = page.evaluate("[window.mercerTiming, window.mercerFullTiming]")
        browser.close()
    return {"moving": first[:moves], "after a rest": first[moves:], "all points": whole[1:]}


def main(argv=None):
    parser = argparse.ArgumentParser(prog="benchmarks.explorer", description=__doc__)
    parser.add_argument("--points", type=int, nargs="+", default=[2000, 20000])
    parser.add_argument("--moves", type=int, default=25)
    parser.add_argument("--rests", type=int, default=5)
    options = parser.parse_args(argv)
    for n in options.points:
        times = in_the_browser(n, options.moves, options.rests)
        row = {
            "points": n,
            "median_ms": {name: round(statistics.median(some)) for name, some in times.items()},
            "worst_ms": {name: round(max(some)) for name, some in times.items()},
            "goal_ms": GOALS.get(n),
            "first_look_cpu_ms": round(first_look(n), 1),
            "load": round(os.getloadavg()[0], 1),
        }
        print(json.dumps(row))
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
