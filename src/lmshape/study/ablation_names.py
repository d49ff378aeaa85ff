"""The names of ablations: what `crop-128` means, and for which tables it can be.

Apart from the arrays (`lmshape.numerics.ablation`), because the grid reads names in every cluster job: light imports
only.
"""

import difflib
import re
from dataclasses import dataclass

RANDOM_WIDTH = 14336  # row length of the random tables: the published study's widest model

# name -> (takes a number, draws a seed)
KINDS = {
    "original": (False, False),
    "random": (False, True),
    "crop": (True, False),
    "pad": (True, True),
    "pca": (True, False),
    "centered": (False, False),
    "shuffled": (False, True),
}
ALLOWED = ", ".join(f"{kind}-N" if numbered else kind for kind, (numbered, _) in KINDS.items())


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
        numbered, _ = KINDS[kind]
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
        return KINDS[self.kind][1]

    def width(self, table_width: int) -> int:
        """Dimensions that are scored when it is applied to a table of `table_width`."""
        return table_width if self.size is None else self.size

    def impossible(self, table_width: int) -> str | None:
        """Why a table of `table_width` cannot be ablated so; None where it can."""
        if self.kind in ("crop", "pca") and self.size > table_width:
            return f"{self} is wider than the table ({table_width})"
        if self.kind == "pad" and self.size < table_width:
            return f"{self} is narrower than the table ({table_width})"
        if self.kind == "random" and table_width > RANDOM_WIDTH:
            return f"random tables are {RANDOM_WIDTH} wide at most (the table: {table_width})"
        return None
