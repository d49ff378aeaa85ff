"""Small language models trained from nothing: tokenizer, weights, and a checkpoint at every step asked for.

They read in training what they read when they are measured: `lmshape.models.sampling.pieces` of texts, in the special
tokens that the tokenizer frames a text with.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BatchEncoding,
    BertConfig,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from lmshape.errors import LmshapeError
from lmshape.inputs import revisions

BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
NEOX_TOKENS = ["<|endoftext|>"]


@dataclass(frozen=True)
class Loss:
    """Mean loss per predicted token (nats) of the training step that led to `step`."""

    step: int
    loss: float
    learning_rate: float


# --- tokenizers ----------------------------------------------------------------------------------------


def train_tokenizer(model_type: str, texts: list[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A tokenizer of `vocabulary` tokens as the model type's originals have: byte BPE or lower-case WordPiece."""
    if model_type == "bert":
        return train_wordpiece(texts, vocabulary)
    return train_byte_bpe(texts, vocabulary)


def train_byte_bpe(texts: list[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Byte-level byte-pair encoding (GPT-NeoX); no special tokens are added to a text.

    The one that it has pads shorter sequences of a batch; the model is told to overlook it.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=NEOX_TOKENS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    end = NEOX_TOKENS[0]
    roles = dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), end)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)


def train_wordpiece(texts: list[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Lower-case WordPiece (BERT); a text is put between [CLS] and [SEP]."""
    tokenizer = bert_tokenizer(models.WordPiece(unk_token=BERT_TOKENS[1]))
    # The trainer numbers continuations (##c) in an order that changes from run to run, and breaks ties by number:
    # numbered beforehand, equal texts give equal vocabularies. They must not be special in the tokenizer itself.
    characters = sorted(set(tokenizer.normalizer.normalize_str(" ".join(texts))) - {" "})
    numbered = BERT_TOKENS + [f"##{character}" for character in characters]
    trainer = trainers.WordPieceTrainer(vocab_size=vocabulary, special_tokens=numbered, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    trained = bert_tokenizer(models.WordPiece(tokenizer.get_vocab(), unk_token=BERT_TOKENS[1]))
    pad, unknown, start, end, mask = BERT_TOKENS
    frame = [(token, trained.token_to_id(token)) for token in (start, end)]
    trained.post_processor = processors.TemplateProcessing(single=f"{start} $A {end}", special_tokens=frame)
    return PreTrainedTokenizerFast(
        tokenizer_object=trained,
        pad_token=pad,
        unk_token=unknown,
        cls_token=start,
        sep_token=end,
        mask_token=mask,
    )


def bert_tokenizer(model: models.Model) -> Tokenizer:
    """BERT's way of parting a text into words, before `model` parts the words."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


# --- models --------------------------------------------------------------------------------------------


def build(
    model_type: str, size: dict, sequence_length: int, tokenizer: PreTrainedTokenizerFast
) -> PreTrainedModel:
    """An untrained model of transformers' own class, with no dropout (the text is read less than once).

    `size` is a suite's entry: width, layers, heads, vocabulary_rows. A GPT-NeoX has untied embeddings. The
    weights are drawn from torch's global generator.
    """
    if len(tokenizer) > size["vocabulary_rows"]:
        raise LmshapeError(f"{len(tokenizer)} tokens do not fit {size['vocabulary_rows']} vocabulary_rows")
    shared = {
        "vocab_size": size["vocabulary_rows"],
        "hidden_size": size["width"],
        "intermediate_size": 4 * size["width"],
        "num_hidden_layers": size["layers"],
        "num_attention_heads": size["heads"],
        "dtype": "float32",
    }
    if model_type == "bert":
        config = BertConfig(
            **shared,
            max_position_embeddings=sequence_length,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=tokenizer.pad_token_id,
        )
        return BertForMaskedLM(config)
    end = tokenizer.eos_token_id
    return GPTNeoXForCausalLM(
        GPTNeoXConfig(
            **shared,
            max_position_embeddings=sequence_length,
            tie_word_embeddings=False,
            bos_token_id=end,
            eos_token_id=end,
        )
    )


# --- training ------------------------------------------------------------------------------------------


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    sequences: Sequence[np.ndarray],
    steps: list[int],
    settings: dict,
    folder: Path,
    device: str,
) -> list[Loss]:
    """Train `model` on sequences of token ids, saving `folder/step<N>` at each of `steps` (ascending, 0 allowed).

    `settings` are the suite's `pretraining` section. Returns the loss of every step. LmshapeError if the loss
    is not finite, naming the step.
    """
    seed = settings["seed"]
    torch.manual_seed(seed)
    generator, collate = np.random.default_rng(seed), collator(tokenizer, seed)
    read = batches(sequences, settings["batch_size"], generator)
    model.to(device).train()
    optimizer = torch.optim.AdamW(parameter_groups(model, settings["weight_decay"]), betas=(0.9, 0.95))
    losses = []
    for step in range(steps[-1] + 1):
        if step in steps:
            save(model, tokenizer, folder / f"step{step}")
        if step == steps[-1]:
            return losses
        rate = learning_rate(step, steps[-1], settings["learning_rate"], settings["warmup"])
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = advance(model, optimizer, collate(next(read)).to(device))
        if not math.isfinite(loss):
            raise LmshapeError(f"the loss is {loss} at step {step + 1}: lower pretraining.learning_rate")
        losses.append(Loss(step + 1, loss, rate))
    return losses


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """A model folder; its revision is the hash of its weights, so that equal trainings have equal names."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    weights = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    revisions.write(folder, "trained here", folder.name, f"sha256:{weights[:16]}")


def advance(model: PreTrainedModel, optimizer: torch.optim.Optimizer, batch: BatchEncoding) -> float:
    """One step of gradient descent on a batch as `collator` makes it; the loss before it."""
    loss = model(**batch).loss
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def batches(
    sequences: Sequence[np.ndarray], batch_size: int, generator: np.random.Generator
) -> Iterator[list[dict[str, np.ndarray]]]:
    """Endless batches of sequences, in a new order on every pass; those that fill no batch are left to the next."""
    if len(sequences) < batch_size:
        raise LmshapeError(
            f"the text to train on makes {len(sequences)} sequences, and pretraining.batch_size is {batch_size}: "
            "give more text, or make text.held_out smaller"
        )
    while True:
        order = generator.permutation(len(sequences))
        for start in range(0, len(sequences) - batch_size + 1, batch_size):
            yield [{"input_ids": sequences[i]} for i in order[start : start + batch_size]]


def collator(tokenizer: PreTrainedTokenizerFast, seed: int) -> DataCollatorForLanguageModeling:
    """What makes padded inputs and labels of sequences: masked where the tokenizer has a mask, else the next tokens.

    Masking is BERT's (Devlin et al. 2019): 15 % of tokens are predicted, of which 80 % are masked, 10 % replaced by a
    random one and 10 % kept. Special tokens are never predicted. A causal model shifts its labels itself.
    """
    return DataCollatorForLanguageModeling(tokenizer, mlm=tokenizer.mask_token_id is not None, seed=seed)


def learning_rate(step: int, last: int, peak: float, warmup: int) -> float:
    """Linear warm-up, then a cosine down to a tenth of `peak` at the last step."""
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, last - warmup)
    return peak * (0.55 + 0.45 * math.cos(math.pi * progress))


def parameter_groups(model: PreTrainedModel, weight_decay: float) -> list[dict]:
    """Matrices are decayed, vectors (biases, norms) are not."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
