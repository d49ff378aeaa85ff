"""Models as people have them: one that would be read or run otherwise than its files mean is refused by name."""

import json

import gguf
import numpy as np
import pytest
import torch
import transformers as tf
from fake_model import FakeModel
from safetensors.torch import load_file, save_file

from lmshape.errors import LmshapeError
from lmshape.inputs.tokenizer_loading import load_tokenizer
from lmshape.models import layers, loading
from lmshape.models.hidden_states import HiddenStates, collect
from lmshape.models.loading import ModelError
from lmshape.models.sampling import Sample, draw

SPECIAL = {"vocab_size": 60, "bos_token_id": 0, "eos_token_id": 2}
SHAPE = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
    "max_position_embeddings": 12,
}  # fmt: skip
SMALL = SPECIAL | SHAPE
VISION = {"image_size": 16, "patch_size": 8}
GPT2 = SPECIAL | {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 12}
BART = SPECIAL | {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_ffn_dim": 16,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "max_position_embeddings": 12, "pad_token_id": 1,
}  # fmt: skip


def model_of(config):
    torch.manual_seed(0)
    return tf.AutoModel.from_config(config, dtype=torch.float32).eval()


def ids(*lengths):
    rng = np.random.default_rng(0)
    return [rng.integers(3, 60, length).astype(np.int32) for length in lengths]


def runs(model, length):
    """Whether transformers itself runs a model on a sequence of so many tokens."""
    try:
        with torch.no_grad():
            model(input_ids=torch.from_numpy(ids(length)[0])[None].long())
    except (RuntimeError, IndexError):
        return False
    return True


# --- lengths and tokens --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "most"),
    [
        (tf.BertConfig(**SMALL), 12),
        (tf.RobertaConfig(**SMALL, pad_token_id=1), 10),
        (tf.OPTConfig(**SPECIAL, **SHAPE | {"ffn_dim": 16}), 12),
        (tf.GPT2Config(**GPT2), 12),
        (tf.BartConfig(**BART), 12),
        (tf.DistilBertConfig(**SPECIAL, dim=16, n_layers=1, n_heads=2, max_position_embeddings=12), 12),
    ],
    ids=lambda value: getattr(value, "model_type", None),
)
def test_more_tokens_than_positions_are_refused_and_as_many_as_transformers_runs_are_not(config, most):
    model = model_of(config)
    assert runs(model, most) and not runs(model, most + 1)
    reader = layers.Reader(model, "toy/tiny/main")
    reader.require_fit(ids(4, most))
    with pytest.raises(ModelError) as refusal:
        reader.require_fit(ids(4, most + 1))
    assert str(refusal.value) == (
        f"toy/tiny/main: takes {most} tokens at once, special tokens included, and not {most + 1}: "
        "lower hidden_states.sequence_length"
    )


def test_rotary_positions_go_on_beyond_what_the_configuration_says_and_the_log_says_so(caplog):
    model = model_of(tf.LlamaConfig(**SMALL))
    assert runs(model, 13)
    layers.Reader(model, "toy").require_fit(ids(13))
    assert "toy: its configuration says 12 positions, and sequences have up to 13 tokens" in caplog.text


def test_a_model_that_fails_on_a_long_sequence_is_one_message_with_what_its_configuration_says():
    reader = layers.Reader(model_of(tf.GPTJConfig(**GPT2, rotary_dim=4)), "toy")
    with pytest.raises(
        ModelError, match="^toy: cannot be run on 13 tokens: IndexError: .*; its configuration says 12"
    ):
        reader.shapes(ids(13)[0])


def test_a_token_that_the_table_has_no_row_for_is_refused_before_the_model_runs(tmp_path, monkeypatch):
    model = FakeModel()
    monkeypatch.setattr(loading, "load", lambda *_: model)
    with pytest.raises(
        ModelError, match="^toy: token 1000 of the text has no row in the model's table of 1000: "
    ):
        collect(
            "nowhere", [np.array([3, 4]), np.array([5, 1000])], tmp_path / "states", name="toy", batch_size=2
        )
    assert model.sizes == [] and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("config", [tf.FNetConfig(**SMALL), tf.BertConfig(**SMALL)], ids=["fnet", "bert"])
def test_a_sequence_has_the_states_that_it_has_alone_also_where_a_family_mixes_in_padding(config, tmp_path):
    model, text = model_of(config), ids(9, 4, 9, 7)
    model.save_pretrained(tmp_path / "model")
    collect(tmp_path / "model", text, tmp_path / "states", name="toy", batch_size=100)
    kept, sample = HiddenStates(tmp_path / "states"), draw(list(map(len, text)), 100, seed=0)
    for number, sequence in enumerate(text):
        with torch.no_grad():
            alone = model(torch.from_numpy(sequence)[None].long(), output_hidden_states=True).hidden_states
        of_it = sample.sequences == number
        for layer in range(3):
            wanted = alone[layer][0, sample.positions[of_it]].numpy()
            np.testing.assert_allclose(
                kept.vectors("model", layer, "all")[of_it], wanted, rtol=1e-4, atol=1e-5
            )


def test_a_family_that_draws_numbers_while_it_runs_gives_the_same_states_each_time(tmp_path):
    lsh = {"attn_layers": ["lsh"] * 2, "lsh_attn_chunk_length": 4, "num_buckets": 2, "attention_head_size": 8}
    axial = {"axial_pos_shape": [4, 4], "axial_pos_embds_dim": [8, 8], "feed_forward_size": 16}
    config = tf.ReformerConfig(**SMALL | lsh | axial | {"max_position_embeddings": 16, "hidden_size": 16})
    model_of(config).save_pretrained(tmp_path / "model")
    states = []
    for _ in range(2):
        collect(tmp_path / "model", ids(8, 12), tmp_path / "states", name="toy", batch_size=100)
        states.append(HiddenStates(tmp_path / "states").vectors("model", 2, "all"))
    assert (states[0] == states[1]).all()


# --- families ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            tf.XLNetConfig(vocab_size=60, d_model=16, n_layer=2, n_head=2, d_inner=16),
            r"blocks pass on \(4, 1, 16\)",
        ),
        (tf.ViTConfig(**SHAPE, **VISION), "has no table of tokens"),
        (tf.CLIPConfig(text_config=SMALL, vision_config=SHAPE | VISION), "2 lists of 2 blocks"),
    ],
    ids=["xlnet", "vit", "clip"],
)
def test_a_family_that_is_not_read_layer_by_layer_is_one_message(config, said):
    with (
        pytest.raises(ModelError, match=f"^toy: .*{said}"),
        torch.device("meta" if "clip" in said else "cpu"),
    ):
        reader = layers.Reader(model_of(config), "toy")
        reader.require_fit(ids(4))
        reader.shapes(ids(4)[0])


def test_a_defect_of_lmshape_while_a_model_runs_keeps_its_type():
    beyond = Sample(np.array([0]), np.array([99]), np.array([0]))
    with pytest.raises(IndexError, match="99"):
        layers.Reader(FakeModel(), "toy").run(ids(4), beyond, lambda *_: None)


# --- folders -------------------------------------------------------------------------------------------


@pytest.fixture
def bert(tmp_path):
    model_of(tf.BertConfig(**SMALL)).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def load(folder):
    return loading.load(folder, "toy/tiny", "float32", "cpu")


def no_configuration(folder):
    (folder / "config.json").unlink()


def cut_short(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:60])


def marked(folder):
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text, encoding="utf-8-sig")
    with pytest.raises(OSError, match="not a valid JSON"):  # else it need not be refused
        tf.AutoConfig.from_pretrained(folder)


def with_weight(key):
    def add(folder):
        weights = load_file(folder / "model.safetensors")
        save_file(weights | {key: torch.ones(1)}, folder / "model.safetensors", {"format": "pt"})

    return add


def changed(**changes):
    return lambda folder: edit(folder / "config.json", **changes)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (no_configuration, "has no config.json"),
        (cut_short("config.json"), "config.json: not JSON"),
        (marked, "config.json: begins with a byte order mark, .*; remove it"),
        (changed(model_type="unheard-of"), "ValueError: .*unheard-of"),
        (
            changed(intermediate_size=24),
            r"layer.0.intermediate.dense.bias of shape \(16,\), and its configuration says \(24,\), as of 5 more",
        ),
        (changed(hidden_act="unheard-of"), "KeyError: .*unheard-of"),
        (changed(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}), "bitsandbytes"),
        (cut_short("model.safetensors"), "SafetensorError"),
        (changed(num_hidden_layers=3), "lacks weights that the model needs: encoder.layer.2"),
        (changed(num_hidden_layers=1), "holds 2 of encoder.layer, and its configuration says 1"),
        (with_weight("encoder.layer.1.output.dense.weight_scale"), "holds quantised weights.*dense.weight_scale"),
        (changed(auto_map={"AutoModel": 3}), "config.json: `auto_map` must name classes, and has 3"),
        (changed(auto_map={"AutoModel": "modeling_bert.JinaBertModel"}), r"code of its own \(modeling_bert.JinaBert"),
    ],
    ids=[
        "no configuration", "configuration cut short", "byte order mark", "unknown family", "another width",
        "unknown activation", "quantised", "weights cut short", "blocks that the checkpoint lacks",
        "blocks that the configuration lacks",
        "scales", "code that has no name", "code of its own",
    ],
)  # fmt: skip
def test_a_folder_that_cannot_be_loaded_as_it_means_is_one_message(bert, harm, said):
    harm(bert)
    with pytest.raises(LmshapeError, match=f"(toy/tiny|{bert}).*{said}") as refusal:
        load(bert)
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("said", "generation", "start"),
    [
        ({"decoder_start_token_id": 5}, {"decoder_start_token_id": 7}, 5),
        ({}, {"decoder_start_token_id": 7}, 7),
        ({"pad_token_id": 3}, {}, 3),
        ({"pad_token_id": None}, {}, "config.json"),
        (
            {},
            {"decoder_start_token_id": "7"},
            "generation_config.json: .* must be a whole number",
        ),
    ],
)
def test_a_decoder_starts_as_its_files_say_or_is_refused(tmp_path, said, generation, start):
    shape = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "vocab_size": 60}
    model_of(tf.T5Config(**shape)).save_pretrained(tmp_path)
    edit(tmp_path / "config.json", **said)
    (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    if isinstance(start, str):
        with pytest.raises(LmshapeError, match=start):
            load(tmp_path)
        return
    model, given = load(tmp_path), []
    model.decoder.register_forward_pre_hook(
        lambda _, args, kwargs: given.append(kwargs["input_ids"]), with_kwargs=True
    )
    layers.Reader(model, "toy").shapes(ids(4)[0])
    assert given[0][0].tolist() == [start, *ids(4)[0][:3]]


def test_weights_in_a_block_that_the_model_has_no_use_for_are_named(bert, caplog):
    with_weight("encoder.layer.1.attention.masked_bias")(bert)
    load(bert)
    assert "the model has no use for encoder.layer.1.attention.masked_bias" in caplog.text


def test_a_gguf_file_of_another_family_is_one_message(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "unheard-of")
    writer.add_tensor("token_embd.weight", np.zeros((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(
        ModelError, match="^toy/tiny: transformers cannot load a model from .*model.gguf: .*unheard-of"
    ):
        load(tmp_path / "model.gguf")
    with pytest.raises(LmshapeError, match="model.gguf: transformers cannot load a tokenizer from here: "):
        load_tokenizer(tmp_path)


def test_code_that_transformers_has_itself_under_that_name_is_no_obstacle(bert):
    edit(bert / "config.json", auto_map={"AutoModel": "someone/else--modeling_bert.BERTModel"})
    assert isinstance(load(bert), tf.BertModel)


def test_memory_that_the_host_lacks_is_a_shortage_as_that_of_a_device_is():
    with pytest.raises(loading.Shortage, match="allocate memory"), loading.shortage_of_memory():
        torch.empty(2**60, dtype=torch.uint8)
