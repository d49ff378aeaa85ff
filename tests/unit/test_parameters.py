"""Parameters counted from configurations agree with transformers' own models and with what was published."""

import numpy as np
import pytest
import torch
import transformers

from lmshape.errors import LmshapeError
from lmshape.inputs.checkpoints import configuration
from lmshape.parameters import count

BERT = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
MBERT = BERT | {
    "model_type": "bert",
    "vocab_size": 119547,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}
XLM_R_BASE = BERT | {
    "model_type": "xlm-roberta",
    "vocab_size": 250002,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
}
XLM_R_LARGE = XLM_R_BASE | {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
REMBERT = {
    "model_type": "rembert",
    "vocab_size": 250300,
    "hidden_size": 1152,
    "num_hidden_layers": 32,
    "num_attention_heads": 18,
    "intermediate_size": 4608,
    "input_embedding_size": 256,
    "output_embedding_size": 1664,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}
T5 = {"model_type": "t5", "vocab_size": 320, "d_model": 32, "d_kv": 16, "d_ff": 80, "num_heads": 4}
T5 |= {"num_layers": 3, "relative_attention_num_buckets": 8}
GPT2 = {"model_type": "gpt2", "vocab_size": 320, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 48}
WIDE = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 320}
ENCODER = WIDE | {"intermediate_size": 80, "max_position_embeddings": 50, "type_vocab_size": 2}
OPT = WIDE | {"model_type": "opt", "ffn_dim": 80, "max_position_embeddings": 48, "word_embed_proj_dim": 32}
FALCON = WIDE | {"model_type": "falcon", "multi_query": True, "parallel_attn": True, "bias": False}
FALCON |= {"new_decoder_architecture": False}
LLAMA = WIDE | {"model_type": "llama", "intermediate_size": 80}

CONFIGURATIONS = {
    "mbert": MBERT,
    "xlm-r-large": XLM_R_LARGE,
    "rembert": REMBERT,
    "bert": ENCODER | {"model_type": "bert"},
    "roberta": ENCODER | {"model_type": "roberta"},
    "albert": ENCODER | {"model_type": "albert", "embedding_size": 8},
    "albert-groups": ENCODER | {"model_type": "albert", "embedding_size": 32, "num_hidden_groups": 3},
    "gpt2": GPT2,
    "gpt2-inner": GPT2 | {"n_inner": 80},
    "gptj": GPT2 | {"model_type": "gptj", "rotary_dim": 4},
    "gpt-neox": WIDE | {"model_type": "gpt_neox", "intermediate_size": 80},
    "opt": OPT | {"do_layer_norm_before": True},
    "opt-narrow": OPT | {"do_layer_norm_before": False, "word_embed_proj_dim": 16},
    "bloom": {"model_type": "bloom", "vocab_size": 320, "hidden_size": 32, "n_layer": 3, "n_head": 4},
    "llama": LLAMA,
    "llama-grouped": LLAMA | {"num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True},
    "falcon": FALCON,
    "falcon-grouped": FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2, "bias": True},
    "falcon-sequential": FALCON | {"multi_query": False, "parallel_attn": False},
    "t5": T5 | {"feed_forward_proj": "relu"},
    "t5-v1_1": T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "mt5": T5 | {"model_type": "mt5", "feed_forward_proj": "gated-gelu", "num_decoder_layers": 2},
}


def empty_model(sizes: dict) -> torch.nn.Module:
    """transformers' pre-training model of a configuration, with shapes and no memory."""
    config = transformers.AutoConfig.for_model(**sizes)
    kinds = {
        "bert": transformers.BertForPreTraining,
        "albert": transformers.AlbertForPreTraining,
        "roberta": transformers.RobertaForMaskedLM,
        "xlm-roberta": transformers.XLMRobertaForMaskedLM,
        "rembert": transformers.RemBertForMaskedLM,
        "t5": transformers.T5ForConditionalGeneration,
        "mt5": transformers.MT5ForConditionalGeneration,
    }
    make = kinds.get(config.model_type, transformers.AutoModelForCausalLM.from_config)
    with torch.device("meta"):
        model = make(config)
        if config.model_type == "rembert":  # its checkpoint has a pooler, its class for pre-training none
            model.rembert.pooler = transformers.RemBertModel(config).pooler
        if config.model_type == "t5" and sizes.get("tie_word_embeddings") is False:
            # transformers 5 ties every T5 until it meets two tables in a checkpoint
            model.lm_head = torch.nn.Linear(config.d_model, config.vocab_size, bias=False)
    return model


def numbers(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_counts_equal_those_of_transformers(name):
    model, counted = empty_model(CONFIGURATIONS[name]), count(CONFIGURATIONS[name])
    body = numbers(model.base_model) - numbers(getattr(model.base_model, "pooler", None) or torch.nn.Module())
    if model.base_model is model and not counted.tied:  # of a T5, all is body
        body -= numbers(model.lm_head)
    assert counted.input_embedding == model.get_input_embeddings().weight.numel()
    assert counted.output_embedding == model.get_output_embeddings().weight.numel()
    assert counted.finetuning_total == body
    assert counted.pretraining_total == numbers(model)
    tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert counted.tied == tied


def test_columns_add_up():
    counted = count(REMBERT)
    assert counted.finetuning_total == counted.input_embedding + counted.transformer
    assert counted.embedding_share == counted.input_embedding / counted.finetuning_total


@pytest.mark.parametrize(
    ("sizes", "column", "millions"),
    [
        (MBERT, "finetuning_total", 177),
        (XLM_R_LARGE, "finetuning_total", 559),
        (REMBERT, "pretraining_total", 995),
        (REMBERT, "finetuning_total", 575),
    ],
)
def test_published_totals_are_reproduced(sizes, column, millions):
    assert round(getattr(count(sizes), column) / 1e6) == millions


def test_published_shares_of_multilingual_models_are_reproduced():
    """Printed as 47 to 71 %, of totals that were printed as 550 and 270 million; of exact totals, 46 to 69 %."""
    exact = {"mbert": count(MBERT), "base": count(XLM_R_BASE), "large": count(XLM_R_LARGE)}
    assert round(100 * exact["large"].input_embedding / 550e6) == 47
    assert round(100 * exact["base"].input_embedding / 270e6) == 71
    shares = {name: round(100 * counted.embedding_share) for name, counted in exact.items()}
    assert shares == {"mbert": 52, "base": 69, "large": 46}


def test_configuration_of_a_gguf_file_can_be_counted(tmp_path):
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    for name, value in {"block_count": 3, "embedding_length": 32, "feed_forward_length": 80}.items():
        writer.add_uint32(f"llama.{name}", value)
    writer.add_uint32("llama.attention.head_count", 4)
    writer.add_uint32("llama.vocab_size", 320)
    writer.add_tensor("token_embd.weight", np.zeros((320, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert count(configuration(tmp_path)) == count(LLAMA | {"tie_word_embeddings": True})


def test_unknown_architecture_and_missing_size_are_named():
    with pytest.raises(LmshapeError, match="model_type 'mamba'; known: albert"):
        count({"model_type": "mamba"})
    with pytest.raises(LmshapeError, match="a bert needs 'type_vocab_size'"):
        count({key: value for key, value in MBERT.items() if key != "type_vocab_size"})
