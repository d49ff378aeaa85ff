"""Small models trained from nothing: reproducible, checkpointed, learning."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertForMaskedLM, GPTNeoXForCausalLM

from lmshape.errors import LmshapeError
from lmshape.inputs import checkpoints, revisions, tokens
from lmshape.models import pretraining, sampling
from lmshape.study.suites import Pretraining, Size

TEXTS = [
    f"The {animal} sees the {other} near the river."
    for animal in ("cat", "dog", "cow")
    for other in ("hen", "fox")
]
SIZE = {"width": 16, "layers": 2, "heads": 2, "vocabulary_rows": 320}
SETTINGS = {
    "seed": 0,
    "sequence_length": 8,
    "batch_size": 4,
    "learning_rate": 1e-2,
    "warmup": 2,
    "weight_decay": 0.1,
}


@pytest.fixture(scope="module", params=["gpt_neox", "bert"])
def trained(request, tmp_path_factory):
    """(model type, folder of checkpoints, losses)"""
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, folder, run(request.param, folder)


@pytest.fixture(params=["gpt_neox", "bert"])
def model_type(request):
    return request.param


def run(model_type: str, folder, seed: int = 0, steps: tuple = (0, 1, 30)) -> list[pretraining.Loss]:
    tokenizer = pretraining.train_tokenizer(model_type, TEXTS, 320)
    sequences, _ = sampling.pieces(*text_of(tokenizer), 8, tokens.frame(tokenizer))
    torch.manual_seed(seed)
    model = pretraining.build(model_type, SIZE, 8, tokenizer)
    return pretraining.train(
        model, tokenizer, sequences, list(steps), SETTINGS | {"seed": seed}, folder, "cpu"
    )


def text_of(tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """Some articles as token ids, and where each begins and ends."""
    return tokens.token_ids([" ".join(TEXTS[:n]) for n in range(1, 7)] * 6, tokenizer, special=False)


def test_the_loss_falls_and_every_step_is_recorded(trained):
    _, _, losses = trained
    assert [loss.step for loss in losses] == list(range(1, 31))
    first, last = (np.mean([loss.loss for loss in part]) for part in (losses[:3], losses[-3:]))
    assert abs(first - np.log(320)) < 1 and last < first - 1


def test_every_checkpoint_is_a_model_folder_of_transformers_own_class(trained):
    model_type, folder, _ = trained
    classes = {"gpt_neox": GPTNeoXForCausalLM, "bert": BertForMaskedLM}
    assert sorted(path.name for path in folder.iterdir()) == ["step0", "step1", "step30"]
    for path in folder.iterdir():
        assert json.loads((path / "config.json").read_text())["architectures"] == [
            classes[model_type].__name__
        ]
        AutoModel.from_pretrained(path, dtype="float32")
        assert AutoTokenizer.from_pretrained(path).get_vocab()
        assert revisions.read(path).startswith("sha256:")


def test_training_is_reproducible_and_seeded(trained, tmp_path):
    model_type, folder, losses = trained
    again = run(model_type, tmp_path / "again")
    run(model_type, tmp_path / "other", seed=1, steps=(0, 1))
    assert again == losses
    assert revisions.read(tmp_path / "again" / "step30") == revisions.read(folder / "step30")
    assert revisions.read(tmp_path / "other" / "step0") != revisions.read(folder / "step0")


def test_step_0_is_the_untrained_model_and_checkpoints_differ(trained):
    _, folder, _ = trained
    tables = [checkpoints.embedding(folder / f"step{step}").float32() for step in (0, 1, 30)]
    assert not np.array_equal(tables[0], tables[1]) and not np.array_equal(tables[1], tables[2])


def test_the_decoder_is_untied_and_the_encoder_tied(trained):
    model_type, folder, _ = trained
    assert checkpoints.embedding(folder / "step30", "output").tied == (model_type == "bert")


@pytest.mark.parametrize("shape", [(16, 2, 2, 320), (24, 3, 4, 500)], ids=str)
@pytest.mark.parametrize("sequence_length", [8, 20])
def test_the_parameters_of_a_suite_are_those_of_the_model_that_is_built(model_type, shape, sequence_length):
    size = Size(
        parameters=1, **dict(zip(("width", "layers", "heads", "vocabulary_rows"), shape, strict=True))
    )
    tokenizer = pretraining.train_tokenizer(model_type, TEXTS, 320)
    model = pretraining.build(model_type, size.model_dump(), sequence_length, tokenizer)
    settings = Pretraining(model_type=model_type, sequence_length=sequence_length)
    assert settings.parameters(size) == model.num_parameters()


@pytest.mark.slow
def test_equal_texts_give_equal_vocabularies_in_every_process():
    """Ties must not be broken by an order that changes from run to run."""
    program = """
        import hashlib, json
        from lmshape.inputs import packages
        from lmshape.models import pretraining
        texts = packages.file("gensim", "test/test_data/head500.noblanks.cor").read_text().splitlines()[:60]
        for model_type in ("gpt_neox", "bert"):
            vocabulary = pretraining.train_tokenizer(model_type, texts, 1000).get_vocab()
            assert len(vocabulary) == 1000
            print(hashlib.sha256(json.dumps(sorted(vocabulary.items())).encode()).hexdigest())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    found = {subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(found) == 1


def test_only_the_encoder_frames_a_text():
    bert = pretraining.train_tokenizer("bert", TEXTS, 320)
    neox = pretraining.train_tokenizer("gpt_neox", TEXTS, 320)
    ids = bert("the cat")["input_ids"]
    assert (ids[0], ids[-1]) == (bert.cls_token_id, bert.sep_token_id)
    assert neox.decode(neox("The cat  sees Ä")["input_ids"]) == "The cat  sees Ä"


def test_a_model_is_trained_on_the_sequences_that_it_is_measured_on(model_type, monkeypatch, tmp_path):
    """All of each: [CLS] and [SEP] around a piece of one article for BERT, nothing for GPT-NeoX, no padding."""
    seen = set()

    def advance(model, optimizer, batch):
        whole = torch.where(batch["labels"] == -100, batch["input_ids"], batch["labels"])
        rows = zip(whole, batch["attention_mask"].bool(), strict=True)
        seen.update(tuple(row[there].tolist()) for row, there in rows)
        return 0.0

    monkeypatch.setattr(pretraining, "advance", advance)
    run(model_type, tmp_path, steps=(0, 60))
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "step0")
    frame = tokens.frame(tokenizer)
    measured = sampling.cut(*text_of(tokenizer), 8, tokens=10**6, seed=0, special=frame).sequences
    assert seen == {tuple(sequence.tolist()) for sequence in measured}
    assert len(seen) > 7 and max(map(len, seen)) == 8
    assert frame == (([], []) if model_type == "gpt_neox" else ([2], [3]))


def test_a_text_is_counted_for_retrieval_in_the_form_that_training_reads(model_type):
    tokenizer = pretraining.train_tokenizer(model_type, TEXTS, 320)
    ids, bounds = tokens.token_ids(TEXTS, tokenizer, special=False)
    read, _ = sampling.pieces(ids, bounds, 128, tokens.frame(tokenizer))
    counted = tokens.count_texts(TEXTS, tokenizer).toarray()
    assert [np.bincount(one, minlength=counted.shape[1]).tolist() for one in read] == counted.tolist()


def test_masking_follows_bert():
    tokenizer = pretraining.train_tokenizer("bert", TEXTS, 320)
    sequence = np.array([tokenizer.cls_token_id, *[len(tokenizer) - 1] * 98, tokenizer.sep_token_id])
    collate = pretraining.collator(tokenizer, 0)
    batch = collate([{"input_ids": sequence}] * 300 + [{"input_ids": sequence[[0, 1, 99]]}] * 100)
    inputs, labels = batch["input_ids"], batch["labels"]
    original = torch.full((400, 100), tokenizer.pad_token_id)
    original[:300], original[300:, :3] = torch.from_numpy(sequence), torch.from_numpy(sequence[[0, 1, 99]])
    words, predicted = original == len(tokenizer) - 1, labels != -100
    assert torch.equal(batch["attention_mask"].bool(), original != tokenizer.pad_token_id)
    assert torch.equal(inputs[~predicted], original[~predicted]) and not predicted[~words].any()
    assert torch.equal(labels[predicted], original[predicted])
    kept, masked = inputs == original, inputs == tokenizer.mask_token_id
    share = {"predicted": predicted, "masked": masked, "other": predicted & ~kept & ~masked}
    found = {name: float(chosen[words].float().mean()) for name, chosen in share.items()}
    assert found == pytest.approx({"predicted": 0.15, "masked": 0.12, "other": 0.015}, abs=0.005)


def test_what_pads_a_batch_changes_no_loss(model_type):
    """The loss of a batch is the mean over the tokens that its sequences, each alone, would predict."""
    tokenizer = pretraining.train_tokenizer(model_type, TEXTS, 320)
    model = pretraining.build(model_type, SIZE, 16, tokenizer).eval()
    generator = np.random.default_rng(0)
    sequences = [{"input_ids": generator.integers(5, len(tokenizer), n)} for n in (16, 3, 9)]
    batch = pretraining.collator(tokenizer, 1)(sequences)
    alone, predicted = [], []
    for row, length in enumerate((16, 3, 9)):
        inputs, labels = (batch[name][[row], :length] for name in ("input_ids", "labels"))
        alone.append(model(input_ids=inputs, labels=labels).loss.nan_to_num().item())
        predicted.append(int((labels[:, int(model_type == "gpt_neox") :] != -100).sum()))
    assert sum(predicted) > 2
    assert model(**batch).loss.item() == pytest.approx(np.average(alone, weights=predicted), rel=1e-5)


def test_every_sequence_is_read_once_before_any_is_read_again():
    sequences = np.arange(100).reshape(20, 5)
    batches = pretraining.batches(sequences, 4, np.random.default_rng(0))
    once = [example["input_ids"] for _ in range(5) for example in next(batches)]
    assert sorted(np.concatenate(once)) == list(range(100))


def test_the_learning_rate_warms_up_and_falls_to_a_tenth():
    rates = [pretraining.learning_rate(step, 100, 1.0, 10) for step in range(101)]
    assert (
        rates[0] == pytest.approx(0.1)
        and max(rates) == pytest.approx(1.0)
        and rates[100] == pytest.approx(0.1)
    )


def test_too_little_text_and_too_many_tokens_are_refused():
    with pytest.raises(
        LmshapeError, match="makes 2 sequences, and pretraining.batch_size is 4: give more text"
    ):
        next(pretraining.batches(np.arange(10).reshape(2, 5), 4, np.random.default_rng(0)))
    tokenizer = pretraining.train_tokenizer("bert", TEXTS, 320)
    with pytest.raises(LmshapeError, match="do not fit 10 vocabulary_rows"):
        pretraining.build("bert", SIZE | {"vocabulary_rows": 10}, 8, tokenizer)


def test_a_loss_that_is_not_finite_names_the_step(monkeypatch, tmp_path):
    monkeypatch.setattr(pretraining, "advance", lambda *_: float("nan"))
    with pytest.raises(LmshapeError, match="the loss is nan at step 1"):
        run("bert", tmp_path)
