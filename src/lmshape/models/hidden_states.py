"""A sample of token vectors at every layer of a model, kept on disk: how it is drawn, written and read.

A folder holds, for each stack of blocks (`encoder` and `decoder`, or `model`, the only one), `<stack>.npy`, float32
(layers + 1, tokens, width); `positions.npy`, (tokens,) the position of each token in its sequence; and
`hidden_states.json`. Tokens lie batch by batch, in random order within. Layer 0 is what enters the first block, layer
i what leaves block i, before any final norm.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from lmshape.errors import LmshapeError
from lmshape.files import reserve, writing
from lmshape.models.sampling import draw
from lmshape.numerics.vectors import Unmeasurable

log = logging.getLogger(__name__)

POSITIONS = ("all", "without_first")  # of each sequence; its first token often carries massive activations
ABOUT = "hidden_states.json"


# --- writing -------------------------------------------------------------------------------------------


def collect(
    model: str | Path,
    sequences: Sequence[np.ndarray],
    folder: str | Path,
    *,
    name: str,
    batch_size: int,
    batches: Sequence[int] | None = None,
    texts: int | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    seed: int = 0,
    identity: Mapping[str, str | None] | None = None,
) -> None:
    """Run a transformers model over token-id sequences and keep a sample of its vectors at every layer in `folder`.

    `model` is a folder, or a GGUF file; `name` is what messages call it; `batches` says of which batch each
    sequence is (all of one by default), `batch_size` how many vectors the measures will read of each, `texts` how
    many texts the sequences are of; `identity` are columns that tell the checkpoint from others
    (`lmshape.models.identity`). Rows go to disk as they come, so that no more than one forward pass is ever in
    memory. Batches that the text does not fill are logged as warnings. Values that are not finite are logged as
    errors by layer and kept: what is measured there fails, and the other layers keep their results.

    A model that leaves no room for one sequence on its device is loaded once more, spread over all devices and the
    host. Raises loading.NoRoom where that does not help, or `device` is the host.
    """
    from lmshape.models import (
        layers,
        loading,
    )  # torch and transformers, which a reader of the folder needs not

    if not sequences:
        raise LmshapeError(f"{name}: there is no text to read")
    sample = draw([len(sequence) for sequence in sequences], batch_size, seed, batches)
    about = {"name": name, "dtype": dtype, "device": device, "seed": seed, "batch_size": batch_size}
    about |= {
        "tokens": np.bincount(sample.batches).tolist(),
        "texts": texts,
        "identity": dict(identity or {}),
    }

    def write(place: str) -> None:
        reader = layers.Reader(loading.load(model, name, dtype, place), name)
        reader.require_fit(sequences)
        shapes = reader.shapes(max(sequences, key=len))
        with writing(folder) as temporary:
            temporary.mkdir()
            files = _Files(temporary, shapes, len(sample.positions))
            reader.run(sequences, sample, files.put)
            files.close(name)
            np.save(temporary / "positions.npy", sample.positions)
            stacks = {stack: depth for stack, (depth, _) in shapes.items()}
            (temporary / ABOUT).write_text(json.dumps(about | {"stacks": stacks}, indent=1), encoding="utf-8")
        for short in HiddenStates(folder).shortages():
            log.warning("%s: %s", name, short)

    try:
        return write(device)
    except loading.NoRoom as error:
        if device == "cpu":  # there is nowhere else to put a part of the model
            raise
        log.info("%s beside the model on %s: spread over all devices", error, device)
    write(loading.SPREAD)


class _Files:
    """One memory-mapped file per stack, filled in any order, and a count of what is not finite."""

    def __init__(self, folder: Path, shapes: dict[str, tuple[int, int]], tokens: int):
        self.maps = {
            stack: _reserved(folder / f"{stack}.npy", (depth + 1, tokens, width))
            for stack, (depth, width) in shapes.items()
        }
        self.bad: Counter[tuple[str, int]] = Counter()

    def put(self, stack: str, layer: int, indices: np.ndarray, rows: np.ndarray) -> None:
        """Keep `rows` (n, width) as the vectors of tokens `indices` (n,) at one layer."""
        self.maps[stack][layer, indices] = rows
        self.bad[stack, layer] += int(rows.size - np.isfinite(rows).sum())

    def close(self, name: str) -> None:
        for (stack, layer), count in sorted(self.bad.items()):
            if count:
                log.error("%s, %s layer %d: %d values are not finite", name, stack, layer, count)
        for stack in self.maps:
            self.maps[stack].flush()


def _reserved(path: Path, shape: tuple[int, ...]) -> np.memmap:
    """A new float32 .npy file, mapped; OSError if the disk has no room for it (writing would end the process)."""
    mapped = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    reserve(path)
    return mapped


# --- reading -------------------------------------------------------------------------------------------


class HiddenStates:
    """The folder that `collect` wrote. Only the vectors that are asked for are read."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        about = json.loads((self.folder / ABOUT).read_text(encoding="utf-8"))
        self.name: str = about["name"]
        self.dtype: str = about["dtype"]
        self.seed: int = about["seed"]
        self.batch_size: int = about["batch_size"]
        self.texts: int | None = about["texts"]
        self.identity: dict[str, str | None] = about["identity"]
        self._layers: dict[str, int] = about["stacks"]
        at = np.load(self.folder / "positions.npy")
        batches = np.split(np.arange(len(at)), np.cumsum(about["tokens"])[:-1])
        self._chosen = {  # of each batch, its tokens that are measured
            "all": [tokens[: self.batch_size] for tokens in batches],
            "without_first": [tokens[at[tokens] > 0][: self.batch_size] for tokens in batches],
        }

    @property
    def stacks(self) -> list[str]:
        return list(self._layers)

    def layers(self, stack: str) -> int:
        """Blocks of a stack: there are vectors for layers 0 to this one."""
        return self._layers[stack]

    def vectors(self, stack: str, layer: int, positions: str, batch: int = 0) -> np.ndarray:
        """Vectors of one batch of a layer, (n, width) float32, in random order.

        n is the batch size, or less where the text was too short for it.
        """
        return self._rows(stack, layer, self._chosen[positions][batch])

    def _rows(self, stack: str, layer: int, tokens: np.ndarray) -> np.ndarray:
        """Vectors of some tokens at a layer, (tokens, width) float32."""
        return np.load(self.folder / f"{stack}.npy", mmap_mode="r")[layer][tokens]

    def shortages(self) -> list[str]:
        """What to say of positions that have not enough vectors for all batches."""
        short = ((positions, self._short(positions)) for positions in POSITIONS)
        return [f"positions {positions}: {why}" for positions, why in short if why]

    def _whole(self, positions: str) -> list[int]:
        """The numbers of the batches that there are enough vectors for."""
        return [i for i, tokens in enumerate(self._chosen[positions]) if len(tokens) == self.batch_size]

    def _short(self, positions: str) -> str | None:
        """Why there are fewer batches than asked for, if there are."""
        whole, chosen = len(self._whole(positions)), self._chosen[positions]
        if whole == len(chosen):
            return None
        return (
            f"{whole} of {len(chosen)} batches have batch_size {self.batch_size} vectors, and the shortest has "
            f"{min(map(len, chosen))}: the texts are too short, too few or too uneven for hidden_states.batches and "
            "hidden_states.batch_size (no two batches share a text), or hidden_states.tokens are too few"
        )

    def cells(self) -> Iterator["Cell"]:
        """Every (stack, layer, positions), each with the batches that there are enough vectors for."""
        return chain.from_iterable(self.by_layer())

    def by_layer(self) -> Iterator[list["Cell"]]:
        """The cells of each layer: one for each of POSITIONS, of which most vectors are the same."""
        whole = {positions: self._whole(positions) for positions in POSITIONS}
        short = {positions: self._short(positions) for positions in POSITIONS}
        for stack in self.stacks:
            for layer in range(self.layers(stack) + 1):
                yield [self._cell(stack, layer, positions, whole[positions], short[positions])
                       for positions in POSITIONS]  # fmt: skip

    def _cell(self, stack: str, layer: int, positions: str, whole: list[int], short: str | None) -> "Cell":
        columns = {
            "stack": None if stack == "model" else stack,  # told by the suite's architecture
            "layer": layer,
            "layers": self.layers(stack),
            "state": "block output" if layer else "block input",
            "positions": positions,
            "batches": len(whole),
            "batch_size": self.batch_size,
            "texts": self.texts,
            "seed": self.seed,
            "dtype": self.dtype,
            **self.identity,
        }
        place = f"{self.name}, {stack} layer {layer}, positions {positions}"
        return Cell(columns, place, whole, short, self._chosen[positions], partial(self._rows, stack, layer))


@dataclass(frozen=True)
class Cell:
    """One (stack, layer, positions): the columns that say so, and its name in messages.

    `whole` are the numbers of its batches, and `short` says why they are fewer than asked for, if they are. `tokens`
    are those of each batch, whose vectors `rows` reads: nothing is, before a measure asks.
    """

    columns: dict[str, Any]
    place: str
    whole: list[int]
    short: str | None
    tokens: list[np.ndarray]
    rows: Callable[[np.ndarray], np.ndarray]

    def read(self, batch: int) -> np.ndarray:
        """The vectors of a batch, (batch size, width) float32."""
        return self.rows(self.tokens[batch])

    def batches(self) -> list[np.ndarray]:
        """The vectors of every batch, (batch size, width) float32."""
        return [self.read(batch) for batch in self.whole]

    def over_batches(self, measure: Callable[[Any], float], batches: Sequence[Any]) -> dict[str, Any]:
        """A measure of each batch, in their order, with its mean and standard deviation (null for one batch).

        A batch that cannot be measured (Unmeasurable) makes the value null, with the reason. A value of fewer batches
        than asked for has a reason, too.
        """
        try:
            if not batches:
                raise Unmeasurable(self.short)
            values = np.array([measure(batch) for batch in batches])
        except Unmeasurable as error:
            return self.failure(error)
        std = float(values.std(ddof=1)) if len(values) > 1 else None
        return {"mean": float(values.mean()), "std": std, "by_batch": values.tolist(), "reason": self.short}

    def failure(self, error: Unmeasurable) -> dict[str, Any]:
        """The null, and the reason why."""
        return {"mean": None, "std": None, "by_batch": None, "reason": f"{self.place}: {error}"}
