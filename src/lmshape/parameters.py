"""Where the parameters of a model are, counted from its configuration alone: no weights, no torch.

The accounting is that of Chung et al., Rethinking embedding coupling in pre-trained language models (ICLR 2021,
arXiv:2010.12821, appendix A.1 and A.2): fine-tuning keeps what leads up to the last layer, and with it a
decoder's final norm. The output embedding, the head before it and the pooler count in pre-training only.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lmshape.errors import LmshapeError
from lmshape.inputs import json_files
from lmshape.inputs.checkpoints import architecture


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters. `embedding_share` is a fraction, input embedding over fine-tuning total.

    `output_embedding` is the table in use, which costs nothing more where it is `tied` to the input.
    `transformer` is the rest of what fine-tuning keeps: positions, norms and projections with the layers.
    """

    input_embedding: int
    output_embedding: int
    tied: bool
    transformer: int
    pretraining_total: int
    finetuning_total: int
    embedding_share: float


@dataclass(frozen=True)
class Counts:
    """What an architecture adds to its tables: the transformer, and the `head` that pre-training puts on it.

    `width` is that of the input embedding and `output_width` that of the output embedding.
    """

    width: int
    transformer: int
    head: int = 0
    output_width: int | None = None


def count(config: dict, where: str = "configuration") -> Parameters:
    """Account for the parameters of a model, given its config.json as a dictionary.

    Raises LmshapeError where the `model_type` is not one that can be counted, or a size is missing.
    """
    model_type = json_files.value(config, "model_type", str, where)
    if model_type not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise LmshapeError(f"{where}: cannot count parameters of model_type {model_type!r}; known: {known}")
    _, tied = architecture(config, where)
    try:
        counts = ARCHITECTURES[model_type](config)
    except KeyError as error:
        raise LmshapeError(
            f"{where}: a {model_type} needs {error} for its parameters to be counted"
        ) from error
    rows = config["vocab_size"]
    first, last = rows * counts.width, rows * (counts.output_width or counts.width)
    kept = first + counts.transformer
    return Parameters(
        input_embedding=first,
        output_embedding=last,
        tied=tied,
        transformer=counts.transformer,
        pretraining_total=kept + counts.head + (0 if tied else last),
        finetuning_total=kept,
        embedding_share=first / kept,
    )


def _linear(inputs: int, outputs: int, bias: bool = True) -> int:
    return inputs * outputs + (outputs if bias else 0)


def _norm(width: int) -> int:
    """Layer norm: a scale and a shift."""
    return 2 * width


def _block(width: int, inner: int) -> int:
    """The layer of BERT and GPT-2: query, key, value and output, two feed-forward matrices, two norms."""
    attention = 4 * _linear(width, width)
    return attention + _linear(width, inner) + _linear(inner, width) + 2 * _norm(width)


def _encoder(config: dict, embedded: int, layers: int) -> int:
    """Positions, token types, their norm, a projection where embeddings are narrower, and the layers."""
    width = config["hidden_size"]
    positions = (config["max_position_embeddings"] + config["type_vocab_size"]) * embedded
    projection = 0 if embedded == width else _linear(embedded, width)
    return positions + _norm(embedded) + projection + layers * _block(width, config["intermediate_size"])


def _masked_head(config: dict, width: int) -> int:
    """What turns a hidden state into a vector that the output embedding is compared with, and its biases."""
    return _linear(config["hidden_size"], width) + _norm(width) + config["vocab_size"]


def _pooler(config: dict) -> int:
    return _linear(config["hidden_size"], config["hidden_size"])


def _bert(config: dict) -> Counts:
    width = config["hidden_size"]
    next_sentence = _linear(width, 2)
    head = _masked_head(config, width) + _pooler(config) + next_sentence
    return Counts(width, _encoder(config, width, config["num_hidden_layers"]), head)


def _roberta(config: dict) -> Counts:
    width = config["hidden_size"]
    return Counts(width, _encoder(config, width, config["num_hidden_layers"]), _masked_head(config, width))


def _albert(config: dict) -> Counts:
    """Layers of a group share their parameters; the output embedding is as narrow as the input's."""
    width = config["embedding_size"]
    layers = config.get("num_hidden_groups", 1) * config.get("inner_group_num", 1)
    # unlike the other encoders, it projects even between equal widths
    projection = _linear(width, width) if width == config["hidden_size"] else 0
    sentence_order = _linear(config["hidden_size"], 2)
    head = _masked_head(config, width) + _pooler(config) + sentence_order
    return Counts(width, _encoder(config, width, layers) + projection, head)


def _rembert(config: dict) -> Counts:
    width, output = config["input_embedding_size"], config["output_embedding_size"]
    projection = _linear(width, width) if width == config["hidden_size"] else 0
    transformer = _encoder(config, width, config["num_hidden_layers"]) + projection
    return Counts(width, transformer, _masked_head(config, output) + _pooler(config), output)


def _gpt2(config: dict) -> Counts:
    width = config["n_embd"]
    inner = config.get("n_inner") or 4 * width
    layers = config["n_layer"] * _block(width, inner)
    return Counts(width, config["n_positions"] * width + layers + _norm(width))


def _gpt_neox(config: dict) -> Counts:
    width = config["hidden_size"]
    layers = config["num_hidden_layers"] * _block(width, config["intermediate_size"])
    return Counts(width, layers + _norm(width))


def _gptj(config: dict) -> Counts:
    """One norm a layer and attention without biases; the output embedding has biases."""
    width = config["n_embd"]
    inner = config.get("n_inner") or 4 * width
    feed_forward = _linear(width, inner) + _linear(inner, width)
    layer = 4 * _linear(width, width, bias=False) + feed_forward + _norm(width)
    return Counts(width, config["n_layer"] * layer + _norm(width), head=config["vocab_size"])


def _opt(config: dict) -> Counts:
    """Two positions more than it says, and projections where embeddings are narrower (the 350m model)."""
    width, embedded = config["hidden_size"], config["word_embed_proj_dim"]
    positions = (config["max_position_embeddings"] + 2) * width
    projections = 0 if embedded == width else 2 * _linear(embedded, width, bias=False)
    has_final_norm = config["do_layer_norm_before"] and not config.get("_remove_final_layer_norm", False)
    layers = config["num_hidden_layers"] * _block(width, config["ffn_dim"])
    return Counts(embedded, positions + projections + layers + (_norm(width) if has_final_norm else 0))


def _bloom(config: dict) -> Counts:
    """No positions, but a norm right after the embedding."""
    width = config.get("hidden_size") or config["n_embed"]
    layers = config["n_layer"] * _block(width, 4 * width)
    return Counts(width, _norm(width) + layers + _norm(width))


def _llama(config: dict) -> Counts:
    """No biases, norms without shifts, a gated feed-forward, fewer key and value heads than query heads."""
    width, heads = config["hidden_size"], config["num_attention_heads"]
    size = config.get("head_dim") or width // heads
    shared = config.get("num_key_value_heads") or heads
    attention = 2 * width * heads * size + 2 * width * shared * size
    layer = attention + 3 * width * config["intermediate_size"] + 2 * width
    return Counts(width, config["num_hidden_layers"] * layer + width)


def _falcon(config: dict) -> Counts:
    """Keys and values shared by all heads (7b) or by groups of them (40b); attention and feed-forward in parallel."""
    width, heads, bias = config["hidden_size"], config["num_attention_heads"], config["bias"]
    grouped = config["new_decoder_architecture"]
    shared = config["num_kv_heads"] if grouped else 1 if config["multi_query"] else heads
    attention = _linear(width, width + 2 * shared * width // heads, bias) + _linear(width, width, bias)
    feed_forward = _linear(width, 4 * width, bias) + _linear(4 * width, width, bias)
    norms = 2 if grouped or not config["parallel_attn"] else 1
    layer = attention + feed_forward + norms * _norm(width)
    return Counts(width, config["num_hidden_layers"] * layer + _norm(width))


def _t5(config: dict) -> Counts:
    """An encoder and a decoder without biases; each stack's first layer holds its relative positions."""
    width, heads = config["d_model"], config["num_heads"]
    attention = 4 * width * heads * config["d_kv"] + width
    gated = config.get("feed_forward_proj", "relu").startswith("gated")
    feed_forward = (3 if gated else 2) * width * config["d_ff"] + width
    positions = config["relative_attention_num_buckets"] * heads
    encoder = config["num_layers"] * (attention + feed_forward) + positions + width
    layers = config.get("num_decoder_layers") or config["num_layers"]
    decoder = layers * (2 * attention + feed_forward) + positions + width
    return Counts(width, encoder + decoder)


ARCHITECTURES: dict[str, Callable[[dict], Counts]] = {
    "albert": _albert,
    "bert": _bert,
    "bloom": _bloom,
    "falcon": _falcon,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "gptj": _gptj,
    "llama": _llama,
    "mt5": _t5,
    "opt": _opt,
    "rembert": _rembert,
    "roberta": _roberta,
    "t5": _t5,
    "xlm-roberta": _roberta,
}
