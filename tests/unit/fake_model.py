"""A model whose hidden states are known exactly: each says which token, where, and after how many blocks."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

WIDTH = 3
SHORTAGES = {  # of memory, as torch raises them: its allocator's, cuBLAS's, and that of a CUDA call
    "allocator": partial(torch.OutOfMemoryError, "CUDA out of memory. Tried to allocate 2.00 GiB."),
    "cublas": partial(RuntimeError, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
    "cuda": partial(torch.AcceleratorError, "CUDA error: out of memory"),
}


class Block(nn.Module):
    """Adds one to the last dimension; may spoil the whole layer."""

    def __init__(self, value: float = 0.0):
        super().__init__()
        self.value = value

    def forward(self, hidden_states):
        return (hidden_states + torch.tensor([0.0, 0.0, 1.0]) + self.value,)  # a tuple, as many blocks return


class FakeModel(nn.Module):
    """Token id, position and layer as a vector of three; a final norm makes everything 0.

    `spoilt` adds a value to what leaves a block: {3: nan} makes layer 3, and those after it, NaN. `memory` is how
    many tokens fit at once, `shortage` makes the error where they do not.
    """

    def __init__(self, blocks=4, spoilt=None, memory=None, shortage=SHORTAGES["allocator"]):
        super().__init__()
        self.blocks = nn.ModuleList([Block((spoilt or {}).get(i + 1, 0.0)) for i in range(blocks)])
        self.config = SimpleNamespace(pad_token_id=0, is_encoder_decoder=False)
        self.memory, self.shortage = memory, shortage
        self.table = nn.Embedding(1000, 1)
        self.sizes = []

    def get_input_embeddings(self):
        return self.table

    def forward(self, input_ids, attention_mask):
        if self.memory is not None and input_ids.numel() > self.memory:
            raise self.shortage()
        self.sizes.append(len(input_ids))
        positions = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        hidden = torch.stack([input_ids, positions, torch.zeros_like(positions)], dim=-1).float()
        for block in self.blocks:
            hidden = block(hidden_states=hidden)[0]
        return 0 * hidden


def sequences(count=40, longest=9):
    """Sequences of different lengths, no id twice, none of them 0."""
    lengths = np.random.default_rng(0).integers(2, longest + 1, count)
    ids = np.arange(1, lengths.sum() + 1, dtype=np.int32)
    return np.split(ids, np.cumsum(lengths)[:-1])
