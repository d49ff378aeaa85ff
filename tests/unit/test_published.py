"""What the files of published families say follows from their models' configurations, and a study of them builds."""

import math
from pathlib import Path

import pytest

from lmshape.parameters import count
from lmshape.study.config import load_study
from lmshape.study.grid import build
from lmshape.study.suites import load_suites

ROOT = Path(__file__).parents[2]
SUITES = load_suites(ROOT / "suites")


def neox(layers, width, rows=50304):
    sizes = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": layers}
    return {"model_type": "gpt_neox", "vocab_size": rows} | sizes


def opt(layers, width, embedded=None):
    sizes = {"hidden_size": width, "ffn_dim": 4 * width, "num_hidden_layers": layers, "vocab_size": 50272}
    table = {"word_embed_proj_dim": embedded or width, "do_layer_norm_before": embedded is None}
    return {"model_type": "opt", "max_position_embeddings": 2048} | sizes | table


def gpt2(layers, width, positions=1024):
    sizes = {"n_layer": layers, "n_embd": width, "n_positions": positions, "vocab_size": 50257}
    return {"model_type": "gpt2"} | sizes


def bloom(layers, width):
    return {"model_type": "bloom", "n_layer": layers, "hidden_size": width, "vocab_size": 250880}


def t5_v1_1(layers, width, inner, heads):
    sizes = {"num_layers": layers, "d_model": width, "d_ff": inner, "num_heads": heads, "d_kv": 64}
    fixed = {"feed_forward_proj": "gated-gelu", "relative_attention_num_buckets": 32, "vocab_size": 32128}
    return {"model_type": "t5", "tie_word_embeddings": False} | sizes | fixed


def encoder(model_type, layers, width, rows, positions=512, types=2, inner=None, **more):
    sizes = {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": inner or 4 * width}
    table = {"vocab_size": rows, "max_position_embeddings": positions, "type_vocab_size": types}
    return {"model_type": model_type} | sizes | table | more


def llama(layers, width, inner, heads, shared=None):
    sizes = {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": inner}
    attention = {"num_attention_heads": heads, "num_key_value_heads": shared or heads}
    return {"model_type": "llama", "vocab_size": 32000} | sizes | attention


FALCON = {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71}
FALCON |= {"new_decoder_architecture": False, "multi_query": True, "parallel_attn": True, "bias": False}
FALCON |= {"vocab_size": 65024}

CONFIGURATIONS = {
    "pythia": {
        "14m": neox(6, 128),
        "31m": neox(6, 256),
        "70m": neox(6, 512),
        "160m": neox(12, 768),
        "410m": neox(24, 1024),
        "1b": neox(16, 2048),
        "1.4b": neox(24, 2048),
        "2.8b": neox(32, 2560),
        "6.9b": neox(32, 4096, 50432),
        "12b": neox(36, 5120, 50688),
    },
    "opt": {
        "125m": opt(12, 768),
        "350m": opt(24, 1024, embedded=512),
        "1.3b": opt(24, 2048),
        "2.7b": opt(32, 2560),
        "6.7b": opt(32, 4096),
        "13b": opt(40, 5120),
        "30b": opt(48, 7168),
        "66b": opt(64, 9216),
    },
    "cerebras-gpt": {
        "111m": gpt2(10, 768, 2048),
        "256m": gpt2(14, 1088, 2048),
        "590m": gpt2(18, 1536, 2048),
        "1.3b": gpt2(24, 2048, 2048),
        "2.7b": gpt2(32, 2560, 2048),
        "6.7b": gpt2(32, 4096, 2048),
        "13b": gpt2(40, 5120, 2048),
    },
    "bloom": {
        "560m": bloom(24, 1024),
        "1b1": bloom(24, 1536),
        "1b7": bloom(24, 2048),
        "3b": bloom(30, 2560),
        "7b1": bloom(30, 4096),
        "176b": bloom(70, 14336),
    },
    "t5-v1_1": {
        "small": t5_v1_1(8, 512, 1024, 6),
        "base": t5_v1_1(12, 768, 2048, 12),
        "large": t5_v1_1(24, 1024, 2816, 16),
        "xl": t5_v1_1(24, 2048, 5120, 32),
        "xxl": t5_v1_1(24, 4096, 10240, 64),
    },
    "gpt2": {
        "small": gpt2(12, 768),
        "medium": gpt2(24, 1024),
        "large": gpt2(36, 1280),
        "xl": gpt2(48, 1600),
    },
    "bert": {"base": encoder("bert", 12, 768, 30522), "large": encoder("bert", 24, 1024, 30522)},
    "roberta": {
        "base": encoder("roberta", 12, 768, 50265, 514, 1),
        "large": encoder("roberta", 24, 1024, 50265, 514, 1),
    },
    "albert": {
        "base": encoder("albert", 12, 768, 30000, embedding_size=128),
        "large": encoder("albert", 24, 1024, 30000, embedding_size=128),
        "xlarge": encoder("albert", 24, 2048, 30000, embedding_size=128),
        "xxlarge": encoder("albert", 12, 4096, 30000, embedding_size=128),
    },
    "gpt-j": {"6b": {"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "vocab_size": 50400}},
    "llama-2": {
        "7b": llama(32, 4096, 11008, 32),
        "7b-chat": llama(32, 4096, 11008, 32),
        "13b": llama(40, 5120, 13824, 40),
    },
    "falcon": {"7b": FALCON, "7b-instruct": FALCON},
    "tinyllama": {"1.1b": llama(22, 2048, 5632, 32, 4)},
    "mbert": {"base": encoder("bert", 12, 768, 119547)},
    "xlm-roberta": {
        "base": encoder("xlm-roberta", 12, 768, 250002, 514, 1),
        "large": encoder("xlm-roberta", 24, 1024, 250002, 514, 1),
    },
    "rembert": {
        "base": encoder("rembert", 32, 1152, 250300, input_embedding_size=256, output_embedding_size=1664),
    },
}
MODELS = [(suite, size) for suite, sizes in CONFIGURATIONS.items() for size in sizes]


def test_every_suite_of_the_hub_is_checked_here():
    ours = {name: list(suite.sizes) for name, suite in SUITES.items() if suite.source == "hub"}
    assert ours == {name: list(sizes) for name, sizes in CONFIGURATIONS.items()}


@pytest.mark.parametrize(("suite", "size"), MODELS)
def test_facts_of_a_model_follow_from_its_configuration(suite, size):
    config, facts = CONFIGURATIONS[suite][size], SUITES[suite].sizes[size]
    counted = count(config)
    assert facts.parameters == counted.pretraining_total
    assert facts.vocabulary_rows == config["vocab_size"]
    assert math.prod(facts.shape("input")) == counted.input_embedding
    assert math.prod(facts.shape("output")) == counted.output_embedding
    assert facts.layers == next(
        config[key] for key in ("num_hidden_layers", "n_layer", "num_layers") if key in config
    )
    assert SUITES[suite].untied_at(size) != counted.tied


@pytest.mark.parametrize(
    ("suite", "size", "parameters"),
    [
        ("pythia", "70m", 70_426_624),
        ("pythia", "2.8b", 2_775_208_960),
        ("pythia", "12b", 11_846_072_320),
        ("bloom", "560m", 559_214_592),
        ("bloom", "176b", 176_247_271_424),
    ],
)
def test_parameters_are_those_that_the_model_cards_print(suite, size, parameters):
    assert SUITES[suite].sizes[size].parameters == parameters


def test_pythia_has_154_checkpoints():
    steps = SUITES["pythia"].checkpoints.steps
    assert len(steps) == 154
    assert steps[:12] == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]
    assert set(steps[11:]) == set(range(1000, 143_001, 1000))


def test_published_study_scores_every_model_that_the_first_seed_printed():
    study = load_study({}, ROOT / "config.yaml", [ROOT / "studies/published.yaml"])
    grid = build(study, SUITES)
    scored = {(c.model.suite, c.model.size, c.ablation) for c in grid.retrieval}
    scored |= {
        (p.combination.model.suite, p.combination.model.size, p.combination.ablation) for p in grid.pruned
    }
    suites = ("pythia", "opt", "cerebras-gpt", "bloom", "t5-v1_1")
    ablations = ("original", "random", "crop-128", "pad-14336")
    assert scored == {(s, size, a) for s in suites for size in SUITES[s].sizes for a in ablations}
    assert len({m.checkpoint for m in grid.hidden_states if m.suite == "pythia"}) == 155
    assert {"comparisons", "published", "word_similarity"} <= set(grid.tables)
