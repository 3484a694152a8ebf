"""The two frames of the explorer in docs/how-to/explore.md: `python docs/explorer_images.py`.

Digits under an RBF kernel with a slider at its right end, and where its curve is highest. Needs
chromium and playwright, as the browser tests do.
"""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

from mercer import RBF
from mercer.cli import demo
from mercer.explore import explore

HERE = Path(__file__).parent / "images"
FRAMES = {"explore-narrow": "RBF(5)", "explore-good": "RBF(0.02)"}
RESTS = "!document.querySelector('#status').classList.contains('busy')"


def main():
    X, y, shape = demo.digits(range(10))
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with explore(X, y, RBF(), image_shape=shape, target_name="digit") as explorer:
        explorer.session.animation.view = "discriminant"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={"width": 1240, "height": 800})
            page.set_default_timeout(180_000)
            page.goto(explorer.url)
            page.wait_for_selector("html[data-ready=true]")
            for name, expression in FRAMES.items():
                page.fill("#expression", expression)
                page.keyboard.press("Enter")
                gamma = expression[4:-1]
                page.wait_for_function(
                    "text => document.querySelector('.knob output').textContent === text", arg=gamma
                )
                page.wait_for_function(RESTS)
                page.wait_for_timeout(500)
                page.screenshot(path=HERE / f"{name}.png")
            browser.close()


if __name__ == "__main__":
    main()
