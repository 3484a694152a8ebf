"""What narrow screens need: figures that scroll, cells with their heading, lines that end well."""

import re
from pathlib import Path

IMAGE = re.compile(r'<img\b[^>]*?\bsrc="(?:[^"]*/)?_images/([^"]+)"[^>]*>')
WIDE = 7.5  # inches: from here on the letters of a figure are too small for a phone
READABLE = 68  # pixels per inch: 12 points are then 11 pixels high

TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
HEADING = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL = re.compile(r"<td\b([^>]*>.*?)</td>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")

FORMULA = re.compile(
    r'(<math\b[^>]*display="inline"[^>]*>(?:(?!</math>).)*</math>)([.,;:!?)]+)', re.DOTALL
)
NAME = re.compile(r'(?<=<span class="pre">)(?:mercer\.|tests/)[^<]*(?=</span>)')
JOINT = re.compile(r"(::|[/._])(?=[A-Za-z_])")


def inches(path):
    """How wide a figure was drawn; a picture that does not say so has 100 pixels per inch."""
    from PIL import Image

    if path.suffix == ".svg":
        box = re.search(r'viewBox="0 0 ([\d.]+)', path.read_text(encoding="utf-8"))
        return float(box[1]) / 100 if box else 0.0
    with Image.open(path) as image:
        return image.width / image.info.get("dpi", (100, 100))[0]


def framed(body, find):
    """The page with a frame around each wide figure; `find` says where a picture is."""

    def frame(match):
        path = find(match[1])
        width = inches(path) if path.exists() else 0.0
        if width < WIDE:
            return match[0]
        style = f"--readable: {READABLE * width:.0f}px"
        return f'<span class="wide-figure" style="{style}">{match[0]}</span>'

    return IMAGE.sub(frame, body)


def labelled(body):
    """The page with the heading of its column on every cell from the second column on."""

    def label_table(table):
        headings = [" ".join(TAG.sub("", text).split()) for text in HEADING.findall(table[0])]

        def label_row(row):
            names = iter(headings)

            def label_cell(cell):
                name = next(names, "")
                if not name or name == headings[0]:
                    return cell[0]
                if not TAG.sub("", cell[0]).strip():
                    return "<td></td>"  # which the style sheet hides
                return f'<td data-label="{name}"{cell[1]}</td>'

            return CELL.sub(label_cell, row[0])

        return ROW.sub(label_row, table[0])

    return TABLE.sub(label_table, body)


def unbroken(body):
    """The page with each formula and the punctuation behind it in one line."""
    return FORMULA.sub(r'<span class="unbroken">\1\2</span>', body)


def breakable(body):
    """The page with places in long names of its tables where a line may end."""

    def mark(table):
        return NAME.sub(lambda name: JOINT.sub(r"\1<wbr>", name[0]), table[0])

    return TABLE.sub(mark, body)


def for_phones(app, pagename, templatename, context, doctree):
    """Prepare a page: mercer.css decides what a narrow screen makes of it."""
    if "body" not in context:
        return
    sources = {name: Path(app.srcdir, source) for source, name in app.builder.images.items()}
    copied = Path(app.outdir, "_images")
    body = framed(context["body"], lambda name: sources.get(name, copied / name))
    context["body"] = breakable(labelled(unbroken(body)))
