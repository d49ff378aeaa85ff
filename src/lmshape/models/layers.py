"""What enters and leaves every block of a transformers model, whatever its family."""

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np
import torch
from torch import nn

from lmshape.errors import reported_as
from lmshape.models.loading import ModelError, NoRoom, Shortage, release, shortage_of_memory
from lmshape.models.sampling import Sample

log = logging.getLogger(__name__)

# what families call the table of a learned vector for each position
POSITIONS = ("position_embeddings", "position_embedding", "positions_embed", "embed_positions", "wpe")
TOKENS_AT_ONCE = 8192  # in one forward pass, until memory runs out
Keep = Callable[[str, int, torch.Tensor], None]  # stack, layer, (sequences, tokens, width)
Put = Callable[
    [str, int, np.ndarray, np.ndarray], None
]  # stack, layer, indices (n,), vectors (n, width) float32


def _input_device(model: nn.Module) -> torch.device:
    """Where token ids may lie: with the first weights, or, if accelerate offloads all (they are `meta`), anywhere."""
    return next((p.device for p in model.parameters() if p.device.type != "meta"), torch.device("cpu"))


def blocks(stack: nn.Module, name: str) -> nn.ModuleList:
    """The list of a stack's blocks: its longest ModuleList that is not inside another one."""
    lists = {path: module for path, module in stack.named_modules() if isinstance(module, nn.ModuleList)}
    outer = [module for path, module in lists.items() if not any(path.startswith(f"{p}.") for p in lists)]
    longest = max(map(len, outer), default=0)
    found = [module for module in outer if len(module) == longest]
    if len(found) != 1:
        raise ModelError(
            f"{name}: {len(found)} lists of {longest} blocks in {type(stack).__name__}, expected one"
        )
    return found[0]


def positions(model: nn.Module) -> int | None:
    """How many tokens a model has learned a position for; None if it has learned none, and may take any number.

    RoBERTa's first position is the one after that of padding, OPT's and BART's the second, by an offset.
    """
    tables = [module for path, module in model.named_modules() if path.rpartition(".")[2] in POSITIONS]
    learned = [table for table in tables if isinstance(table, nn.Embedding)]
    firsts = [
        getattr(table, "offset", 0 if table.padding_idx is None else table.padding_idx + 1)
        for table in learned
    ]
    return min(
        (len(table.weight) - first for table, first in zip(learned, firsts, strict=True)), default=None
    )


class Reader:
    """Runs a model and reads its layers by hooks on the blocks.

    transformers' own `hidden_states` would not do: for many families its last entry is after the final norm.
    """

    def __init__(self, model: nn.Module, name: str):
        self.model = model
        self.name = name
        self.both = model.config.is_encoder_decoder
        stacks = {"model": model}
        if self.both:
            stacks = {"encoder": model.get_encoder(), "decoder": model.get_decoder()}
        self._given = (0, 0)  # sequences and tokens of the forward pass going on
        self._next: dict[str, int] = {}  # stack -> layer that is read next in it
        self._keep: Keep = lambda stack, layer, hidden: None
        for stack, module in stacks.items():
            found = blocks(module, name)
            found[0].register_forward_pre_hook(self._entering(stack), with_kwargs=True)
            for block in found:
                block.register_forward_hook(self._leaving(stack))

    def require_fit(self, sequences: Sequence[np.ndarray]) -> None:
        """Raise ModelError for a sequence that the model has too few positions for, or a token without a row.

        The log says where sequences are longer than the configuration speaks of, which rotary positions allow.
        """
        with reported_as(ModelError, f"{self.name}: has no table of tokens"):
            rows = len(self.model.get_input_embeddings().weight)
        last, longest = max(int(ids.max()) for ids in sequences), max(map(len, sequences))
        if last >= rows:
            raise ModelError(
                f"{self.name}: token {last} of the text has no row in the model's table of {rows}: the tokenizer is "
                "another model's, or has tokens that the model was not trained with; correct the suite's `tokenizer`"
            )
        if (most := positions(self.model)) is not None and longest > most:
            raise ModelError(
                f"{self.name}: takes {most} tokens at once, special tokens included, and not {longest}: lower "
                "hidden_states.sequence_length"
            )
        if longest > self._said_positions():
            log.warning(
                "%s: its configuration says %d positions, and sequences have up to %d tokens",
                self.name, self._said_positions(), longest,
            )  # fmt: skip

    def shapes(self, sequence: np.ndarray) -> dict[str, tuple[int, int]]:
        """Stack -> (layers, width), found by running a sequence. Raises NoRoom where there is no memory for it.

        It should be the longest: a model may have another way for short ones, and keep to it (BigBird).
        """
        found: dict[str, tuple[int, int]] = {}

        def keep(stack: str, layer: int, hidden: torch.Tensor) -> None:
            found[stack] = (layer, hidden.shape[-1])

        try:
            self._forward([sequence], keep)
        except Shortage:
            raise NoRoom(f"{self.name}: no memory for one sequence of {len(sequence)} tokens") from None
        return found

    def run(self, sequences: Sequence[np.ndarray], sample: Sample, put: Put) -> None:
        """Give `put` the vectors of the sample at every layer, a layer of a few sequences at a time.

        Only sequences of one length go together, as not every family leaves out padding where it mixes tokens; the
        longest go first, so that memory runs out at once or never. Then their number is halved; what was put from a
        pass that failed is put again. Raises NoRoom where even one sequence is too many.
        """
        used, lengths = np.unique(sample.sequences), np.array([len(sequence) for sequence in sequences])
        used = used[np.argsort(-lengths[used], kind="stable")]
        size = max(1, TOKENS_AT_ONCE // int(lengths[used].max()))
        while len(used):
            group = used[:size][lengths[used[:size]] == lengths[used[0]]]
            with suppress(Shortage):
                self._run_group(sequences, group, sample, put)
                used = used[len(group) :]
                continue
            release()  # outside the handler: an error holds on to the layers of the pass that failed
            if len(group) == 1:
                raise NoRoom(f"{self.name}: no memory for one sequence of {lengths[group[0]]} tokens")
            size = len(group) // 2
            log.info("%s: out of memory, on with %d sequences at once", self.name, size)

    def _run_group(
        self, sequences: Sequence[np.ndarray], group: np.ndarray, sample: Sample, put: Put
    ) -> None:
        indices = np.flatnonzero(np.isin(sample.sequences, group))
        row_of = {sequence: row for row, sequence in enumerate(group)}
        rows = torch.tensor([row_of[sequence] for sequence in sample.sequences[indices]])
        columns = torch.from_numpy(sample.positions[indices])

        def keep(stack: str, layer: int, hidden: torch.Tensor) -> None:
            vectors = hidden[rows.to(hidden.device), columns.to(hidden.device)]
            put(stack, layer, indices, vectors.to("cpu", torch.float32).numpy())

        self._forward([sequences[i] for i in group], keep)

    @torch.inference_mode()
    def _forward(self, sequences: Sequence[np.ndarray], keep: Keep) -> None:
        """Run sequences of one length together; `keep` is given every layer as it is computed."""
        ids = torch.from_numpy(np.stack(sequences)).long()
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if self.both:  # the decoder reads the same text one token later, after its start token
            start = torch.full_like(ids[:, :1], self.model.config.decoder_start_token_id)
            inputs["decoder_input_ids"] = torch.cat([start, ids[:, :-1]], dim=1)
        self._given, self._next, self._keep = tuple(ids.shape), {}, keep
        device = _input_device(self.model)
        torch.manual_seed(0)  # some families draw numbers in a pass, as Reformer does for its hashes
        with self._reporting(), shortage_of_memory():
            self.model(**{name: value.to(device) for name, value in inputs.items()})

    def _reporting(self) -> AbstractContextManager[None]:
        """What fails inside is a ModelError, which names the length where it is more than the configuration says."""
        length, limit = self._given[1], self._said_positions()
        advice = f"its configuration says {limit} positions: lower hidden_states.sequence_length"
        return reported_as(
            ModelError, f"{self.name}: cannot be run on {length} tokens", advice if length > limit else ""
        )

    def _said_positions(self) -> float:
        """The positions that the configuration speaks of, for whatever purpose; infinity if of none."""
        found = getattr(self.model.config, "max_position_embeddings", None)
        return found if isinstance(found, int) and found > 0 else math.inf

    def _entering(self, stack: str) -> Callable[..., None]:
        def hook(block: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
            if (
                stack not in self._next
            ):  # else a block that is shared by all layers (ALBERT's) is entered again
                self._read(stack, args[0] if args else kwargs.get("hidden_states"))

        return hook

    def _leaving(self, stack: str) -> Callable[..., None]:
        def hook(block: nn.Module, args: tuple, output: Any) -> None:
            self._read(stack, output if isinstance(output, torch.Tensor) else output[0])

        return hook

    def _read(self, stack: str, hidden: Any) -> None:
        """Keep what a block was given or gave, (sequences, tokens, width); a model may pad it by more tokens."""
        shape = tuple(getattr(hidden, "shape", ()))
        if len(shape) != 3 or shape[0] != self._given[0] or shape[1] < self._given[1]:
            raise ModelError(
                f"{self.name}: for {self._given[0]} sequences of {self._given[1]} tokens its {stack} blocks pass "
                f"on {shape or type(hidden).__name__} and not (sequences, tokens, width)"
            )
        layer = self._next.get(stack, 0)
        self._keep(stack, layer, hidden)
        self._next[stack] = layer + 1
