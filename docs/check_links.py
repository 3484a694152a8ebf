"""Check every link of the built site that needs no network: files, pages, anchors, images.

And the alternative texts of the gallery: a figure without a title is called by its file's name.

python docs/check_links.py docs/_build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places that others may link to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.untitled = [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        for name in ("href", "src"):
            if given.get(name):
                self.links.append(given[name])
        if given.get("srcset"):
            self.links += [part.split()[0] for part in given["srcset"].split(",")]
        self.anchors |= {given.get("id"), given.get("name")}
        if tag == "img" and (given.get("alt") or "").startswith("plot "):
            self.untitled.append(given["alt"])


def broken(root):
    pages = {
        path: Page(path) for path in sorted(root.rglob("*.html")) if "_static" not in path.parts
    }
    for path, page in pages.items():
        for name in page.untitled:
            yield f"{path.relative_to(root)}: the figure called '{name}' has no title"
        for link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{path.relative_to(root)}: no file for {link}"
            elif (
                url.fragment
                and target in pages
                and unquote(url.fragment) not in pages[target].anchors
            ):
                yield f"{path.relative_to(root)}: no anchor for {link}"


def main(folder):
    root = Path(folder).resolve()
    problems = sorted(set(broken(root)))
    print("\n".join(problems) or f"links of {len(list(root.rglob('*.html')))} pages: all there")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
