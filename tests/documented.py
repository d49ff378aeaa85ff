"""The columns that docs/measures.md explains, by table."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "measures.md"


def tables() -> dict[str, set[str]]:
    """Table -> its columns: those of its own section, and of the sections of shared ones that it links to."""
    part = PAGE.read_text(encoding="utf-8").partition("## The tables, column by column\n")[2]
    sections = dict(section.split("\n", 1) for section in re.split(r"^### ", part, flags=re.MULTILINE)[1:])
    shared = {address(title): columns(text) for title, text in sections.items() if not title.startswith("`")}
    found = {}
    for title, text in sections.items():
        if title.startswith("`"):
            links = re.findall(r"\]\(#(.+?)\)", text)
            found[title.strip("`")] = columns(text).union(*(shared.get(link, ()) for link in links))
    return found


def columns(section: str) -> set[str]:
    """The names in the first cell of each row."""
    cells = re.findall(r"^\| (`.+?) \|", section, flags=re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def address(title: str) -> str:
    """How a link in the page calls a heading."""
    return re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
