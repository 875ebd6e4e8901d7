"""Pictures of the documentation: each is shown, fits a screen, can be read, and is what its program draws."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs import make_pictures

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT = sorted(path for suffix in ("svg", "png") for path in DOCS.rglob(f"*.{suffix}"))
SVG = "{http://www.w3.org/2000/svg}"


def test_every_kept_picture_is_shown_and_every_shown_picture_is_kept():
    shown = set()
    for page in (*DOCS.rglob("*.md"), ROOT / "README.md"):
        links = re.findall(r"!\[[^\]]*\]\(([^)\s]+\.(?:svg|png))\)", page.read_text(encoding="utf-8"))
        shown |= {(page.parent / link).resolve() for link in links if ":" not in link}
    missing = sorted(str(path.relative_to(ROOT)) for path in shown if not path.exists())
    assert (missing, sorted(str(path.relative_to(ROOT)) for path in set(KEPT) - shown)) == ([], [])


@pytest.mark.parametrize("path", [one for one in KEPT if one.suffix == ".svg"], ids=lambda one: one.stem)
def test_kept_pictures_are_no_wider_than_a_screen_and_their_letters_are_9_pixels_high(path):
    root = ElementTree.parse(path).getroot()
    number, unit = re.fullmatch(r"([0-9.]+)(pt)?", root.get("width")).groups()
    assert float(number) * (4 / 3 if unit else 1) <= 1200
    assert all(float(text.get("font-size") or 9) >= 9 for text in root.iter(SVG + "text"))


def test_the_pictures_of_the_home_page_are_what_its_program_draws():
    """After a change of drawings or results: python -m docs.make_pictures."""
    for name, text in make_pictures.render().items():
        assert (make_pictures.FOLDER / name).read_text(encoding="utf-8") == text, name


def test_the_bars_of_the_home_page_are_the_numbers_of_the_results():
    groups = dict(make_pictures.gains())
    assert groups["Calls of 64K and 256K, nothing set"][0] == ("4 : 1, several ranks a host", 2.56)
    assert ("3D Fourier transform, 2 a host", 1.89) in groups["Whole programs at 4 : 1, tuned, after set-up"]
    page = (DOCS / "gains.md").read_text(encoding="utf-8")
    assert all(f"{gain:g}" in page for bars in groups.values() for _, gain in bars)
