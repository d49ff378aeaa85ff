"""The names of ablations: what `crop-128` means, and for which tables it can be.

Apart from the arrays (`lmshape.numerics.ablation`), because the grid reads names in every cluster job: light imports
only. A job that applies an ablation reads nothing here but the reason why its own is impossible, so that another
kind makes no result stale.
"""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

RANDOM_WIDTH = 14336  # row length of the random tables: the published study's widest model


def wider(name: str, size: int | None, width: int) -> str | None:
    """Why some dimensions of a table of `width` cannot be `size` dimensions."""
    return f"{name} is wider than the table ({width})" if size > width else None


def narrower(name: str, size: int | None, width: int) -> str | None:
    """Why a table of `width` cannot be made `size` wide."""
    return f"{name} is narrower than the table ({width})" if size < width else None


def too_wide_to_draw(name: str, size: int | None, width: int) -> str | None:
    """Why there is no random table of `width`."""
    if width > RANDOM_WIDTH:
        return f"{name} tables are {RANDOM_WIDTH} wide at most (the table: {width})"
    return None


@dataclass(frozen=True)
class Kind:
    """What is known of an ablation before it is applied.

    `draws` says whether it needs a seed, `length`, given its number, the row length of the random table that it takes
    columns of, and `impossible` why it cannot be of a table, given its name, its number and the table's width.
    """

    numbered: bool = False
    draws: bool = False
    length: Callable[[int | None], int | None] = lambda size: None
    impossible: Callable[[str, int | None, int], str | None] = lambda name, size, width: None


KINDS = {
    "original": Kind(),
    "random": Kind(draws=True, length=lambda size: RANDOM_WIDTH, impossible=too_wide_to_draw),
    "crop": Kind(numbered=True, impossible=wider),
    "pad": Kind(numbered=True, draws=True, length=lambda size: size, impossible=narrower),
    "pca": Kind(numbered=True, impossible=wider),
    "centered": Kind(),
    "shuffled": Kind(draws=True),
}
ALLOWED = ", ".join(f"{name}-N" if kind.numbered else name for name, kind in KINDS.items())


@dataclass(frozen=True)
class Ablation:
    """One ablation of an embedding table, e.g. `original` or `crop-128` (kind `crop`, size 128)."""

    kind: str
    size: int | None = None

    @classmethod
    def parse(cls, name: str) -> "Ablation":
        """The ablation `name` stands for; ValueError with the allowed names if there is none."""
        kind, dash, number = name.partition("-")
        if kind not in KINDS:
            close = difflib.get_close_matches(kind, KINDS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(f"there is no ablation {name!r}; allowed: {ALLOWED}{hint}")
        numbered = KINDS[kind].numbered
        if not numbered and dash:
            raise ValueError(f"ablation {name!r}: {kind} takes no number; write {kind}")
        if numbered and not re.fullmatch(r"[1-9][0-9]*", number):
            raise ValueError(
                f"ablation {name!r}: {kind} needs a number of dimensions of 1 or more, e.g. {kind}-128"
            )
        return cls(kind, int(number) if numbered else None)

    def __str__(self) -> str:
        return self.kind if self.size is None else f"{self.kind}-{self.size}"

    @property
    def random(self) -> bool:
        """Whether it draws numbers, and so needs a seed."""
        return KINDS[self.kind].draws

    @property
    def length(self) -> int | None:
        """How long the rows of the random table are that it takes columns of; None where it takes none."""
        return KINDS[self.kind].length(self.size)

    def width(self, table_width: int) -> int:
        """Dimensions that are scored when it is applied to a table of `table_width`."""
        return table_width if self.size is None else self.size

    def impossible(self, table_width: int) -> str | None:
        """Why a table of `table_width` cannot be ablated so; None where it can."""
        return KINDS[self.kind].impossible(str(self), self.size, table_width)
