"""The folder of hidden states: what is kept of which token, and what becomes of layers that cannot be measured."""

import json
import logging
import re

import numpy as np
import pytest
from fake_model import WIDTH, FakeModel, sequences

from lmshape import anisotropy, intrinsic_dimension
from lmshape.errors import LmshapeError
from lmshape.models import loading
from lmshape.models.hidden_states import POSITIONS, HiddenStates, collect

KEYS = {
    "stack", "layer", "layers", "state", "positions", "batches", "batch_size", "texts", "seed", "dtype",
    "table_sha256", "model_revision", "mean", "std", "by_batch", "rows_dropped", "reason",
}  # fmt: skip


@pytest.fixture
def states(tmp_path, monkeypatch):
    """Collect from a fake model; returns the folder, read."""

    def make(model=None, batch_size=100, folder="states", text=None, **options):
        monkeypatch.setattr(loading, "load", lambda *_: model or FakeModel())
        options = {"name": "fake 3x4 step 7", "batch_size": batch_size, **options}
        collect("nowhere", text or sequences(), tmp_path / folder, **options)
        return HiddenStates(tmp_path / folder)

    return make


def test_every_layer_holds_the_same_tokens_from_what_enters_the_first_block_to_what_leaves_the_last(states):
    found = states()
    text = sequences()
    place = {
        int(token): position for sequence in text for position, token in enumerate(sequence)
    }  # no id occurs twice
    assert found.stacks == ["model"] and found.layers("model") == 4
    first = found.vectors("model", 0, "all")
    assert first.shape == (100, WIDTH) and len(np.unique(first[:, 0])) == 100
    for layer in range(5):
        vectors = found.vectors("model", layer, "all")
        assert (vectors[:, 0] == first[:, 0]).all()
        assert [place[token] for token in vectors[:, 0].astype(int)] == vectors[:, 1].tolist()
        assert (vectors[:, 2] == layer).all(), "the final norm would have made these 0"


def test_without_first_has_as_many_vectors_and_none_at_the_beginning_of_a_sequence(states):
    found = states()
    assert (found.vectors("model", 2, "all")[:, 1] == 0).any()
    others = found.vectors("model", 2, "without_first")
    assert others.shape == (100, WIDTH) and (others[:, 1] > 0).all()


def test_every_batch_holds_vectors_of_its_own_sequences(states, caplog):
    text = sequences()
    batches = [number % 3 for number in range(len(text))]
    found = states(batch_size=30, batches=batches, texts=17)
    assert found.shortages() == [] and "batches" not in caplog.text
    for positions in POSITIONS:
        for batch in range(3):
            own = np.concatenate([ids for ids, number in zip(text, batches, strict=True) if number == batch])
            vectors = found.vectors("model", 2, positions, batch)
            assert len(vectors) == 30 and set(vectors[:, 0].astype(int)) <= set(own.tolist())
    for cell in found.cells():
        assert (cell.columns["batches"], cell.columns["batch_size"], cell.columns["texts"]) == (3, 30, 17)
        assert [batch.shape for batch in cell.batches()] == [(30, WIDTH)] * 3


def test_a_batch_that_the_text_does_not_fill_is_no_batch_as_log_and_rows_say(states, caplog):
    text = sequences()
    found = states(batch_size=20, batches=[0] * 2 + [1] * (len(text) - 2))
    size = len(np.concatenate(text[:2]))
    told = f"1 of 2 batches have batch_size 20 vectors, and the shortest has {size}: .*hidden_states.batches and hidd"
    assert re.search(f"fake 3x4 step 7: positions all: {told}", caplog.text)
    for row in anisotropy.rows(found):
        assert row["mean"] is not None and row["std"] is None and row["batches"] == 1
        assert row["positions"] != "all" or re.match(told, row["reason"])
        assert row["positions"] == "all" or f"shortest has {size - 2}" in row["reason"]
    assert len(found.vectors("model", 0, "all", 0)) == len(np.concatenate(text[:2])) < 20
    for cell in found.cells():
        assert cell.columns["batches"] == 1
        assert np.array_equal(cell.batches()[0], cell.read(1))


def test_vectors_are_in_random_order_repeated_by_the_seed(states):
    one = states(seed=1, folder="one").vectors("model", 1, "all")
    assert (one == states(seed=1, folder="again").vectors("model", 1, "all")).all()
    assert (one != states(seed=2, folder="two").vectors("model", 1, "all")).any()
    assert abs(np.corrcoef(np.arange(100), one[:, 0])[0, 1]) < 0.3


def test_what_identifies_the_checkpoint_is_kept_for_every_row(states):
    found = states(identity={"table_sha256": None, "model_revision": "commit"})
    columns = [cell.columns for cell in found.cells()]
    assert len(columns) == 5 * 2
    assert {(c["table_sha256"], c["model_revision"]) for c in columns} == {(None, "commit")}


def test_a_failed_job_leaves_no_folder(states, tmp_path):
    with pytest.raises(LmshapeError, match="fake 3x4 step 7: no memory for one sequence"):
        states(FakeModel(memory=8))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(LmshapeError, match="there is no text"):
        collect("nowhere", [], tmp_path / "none", name="fake", batch_size=1)


def rows_of(found):
    return {
        "anisotropy": anisotropy.rows(found),
        "intrinsic_dimension": intrinsic_dimension.rows(found, ["twonn", "mada"], [0.9, 0.2]),
    }


def random_states(tmp_path, spoil=None, batches=3, tokens=220, layers=3, batch_size=200):
    """A folder with random vectors, as `collect` would write it; `spoil` changes a layer's array in place."""
    folder = tmp_path / "random"
    folder.mkdir()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((layers + 1, batches * tokens, 6)).astype(np.float32)
    if spoil:
        spoil(X)
    np.save(folder / "encoder.npy", X)
    np.save(folder / "positions.npy", np.arange(batches * tokens) % 11)
    about = {
        "name": "bert-small 96x4 step 16",
        "dtype": "bfloat16",
        "seed": 5,
        "batch_size": batch_size,
        "texts": 8,
    }
    about |= {"identity": {"table_sha256": "ab", "model_revision": "cd"}, "stacks": {"encoder": layers}}
    (folder / "hidden_states.json").write_text(json.dumps(about | {"tokens": [tokens] * batches}))
    return HiddenStates(folder)


def test_rows_have_one_value_per_layer_positions_and_measure(tmp_path):
    found = random_states(tmp_path)
    rows = rows_of(found)
    assert len(rows["anisotropy"]) == 4 * 2 * 5
    assert len(rows["intrinsic_dimension"]) == 4 * 2 * 3
    for row in rows["anisotropy"] + rows["intrinsic_dimension"]:
        assert row.keys() >= KEYS and row["reason"] is None
        measured = (row["batches"], row["batch_size"], row["texts"], row["seed"], row["dtype"])
        assert measured == (3, 200, 8, 5, "bfloat16")
        assert len(row["by_batch"]) == 3
        assert (row["table_sha256"], row["model_revision"]) == ("ab", "cd")
        assert row["state"] == ("block input" if row["layer"] == 0 else "block output")


def test_a_row_is_the_mean_and_spread_over_batches(tmp_path):
    found = random_states(tmp_path)
    batches = [found.vectors("encoder", 2, "all", batch) for batch in range(3)]
    key = {"layer": 2, "positions": "all"}
    wanted = {
        ("svd", False): [anisotropy.anisotropy(batch, center=False) for batch in batches],
        ("average_cosine", True): [anisotropy.average_cosine(batch, center=True) for batch in batches],
        ("largest_norms", True): [anisotropy.norm_variance_share(batch) for batch in batches],
    }
    rows = rows_of(found)
    for (measure, centered), values in wanted.items():
        row = one(rows["anisotropy"], measure=measure, centered=centered, **key)
        assert row["by_batch"] == pytest.approx(values) and row["mean"] == pytest.approx(np.mean(values))
        assert row["std"] == pytest.approx(np.std(values, ddof=1))
    values = [intrinsic_dimension.estimate(batch, ["twonn"], 0.2)["twonn"] for batch in batches]
    row = one(rows["intrinsic_dimension"], estimator="twonn", fraction=0.2, **key)
    assert row["mean"] == pytest.approx(np.mean(values))
    assert row["stderr"] == pytest.approx(np.std(values, ddof=1) / 3**0.5)
    assert row["stderr_facco"] == pytest.approx(np.hypot.reduce(values) / 3 / 40**0.5)
    assert one(rows["intrinsic_dimension"], estimator="mada", **key)["stderr_facco"] is None


def one(rows, **key):
    found = [row for row in rows if all(row[name] == value for name, value in key.items())]
    assert len(found) == 1
    return found[0]


def test_repeated_vectors_are_dropped_and_counted(tmp_path):
    def spoil(X):
        X[1, 100:130] = X[1, :30]

    rows = rows_of(random_states(tmp_path, spoil))["intrinsic_dimension"]
    dropped = {row["layer"]: row["rows_dropped"] for row in rows if row["positions"] == "all"}
    assert dropped == {0: 0, 1: 30, 2: 0, 3: 0}


def test_one_batch_has_no_spread(tmp_path):
    for row in sum(rows_of(random_states(tmp_path, batches=1)).values(), []):
        assert row["batches"] == 1 and row["std"] is None and row["mean"] is not None


def test_only_what_cannot_be_measured_becomes_a_null_and_a_defect_does_not(tmp_path):
    def defect(batch):
        raise ValueError("shapes do not match")

    cell = next(random_states(tmp_path).cells())
    with pytest.raises(ValueError, match="shapes do not match"):
        cell.over_batches(defect, cell.batches())


# --- traps ---------------------------------------------------------------------------------------------


def test_neighbours_are_the_studys_and_a_column_of_the_estimators_that_have_them(tmp_path):
    found = random_states(tmp_path)
    rows = intrinsic_dimension.rows(found, ["twonn", "mada", "mom"], [0.9], {"mada": 10})
    used = {row["estimator"]: row["neighbors"] for row in rows}
    assert used == {"twonn": None, "mada": 10, "mom": 100}
    batches = [found.vectors("encoder", 1, "all", batch) for batch in range(3)]
    want = np.mean([intrinsic_dimension.estimate(batch, neighbors={"mada": 10})["mada"] for batch in batches])
    assert one(rows, layer=1, positions="all", estimator="mada")["mean"] == pytest.approx(want)


def test_a_value_that_hangs_on_near_twins_is_in_the_table_with_its_doubt(tmp_path):
    """A value of 3.5 in one batch and of 0.4 in another, and a standard error by the law of a twentieth."""

    def spoil(X):
        for batch, pairs in enumerate((9, 12, 9)):  # of 200 vectors
            twins = 220 * batch + np.arange(2 * pairs)
            X[1, twins[pairs:]] = X[1, twins[:pairs]] + np.float32(1e-6)

    rows = intrinsic_dimension.rows(random_states(tmp_path, spoil), ["twonn", "mada"], [0.9, 0.2])
    doubted = [row for row in rows if row["doubt"]]
    assert {(row["layer"], row["fraction"], row["reason"]) for row in doubted} == {(1, 0.9, None)}
    row = one(doubted, positions="all")
    low, broken, high = row["by_batch"]
    assert broken < 1 < 3 < min(low, high) and row["mean"] == pytest.approx((low + broken + high) / 3)
    assert row["extreme_ratios"] == 0.12 and row["stderr"] > 0.5 and row["stderr_facco"] is None
    assert "near twins: a fit of the smallest 0.9 of the ratios bears 0.05" in row["doubt"]
    clean = one(rows, layer=2, positions="all", fraction=0.9)
    assert clean["extreme_ratios"] == 0 and clean["stderr_facco"] > 0 and clean["doubt"] is None
    assert one(rows, layer=1, positions="all", estimator="mada")["extreme_ratios"] is None


def check_only_layer_fails(rows, layer, reason):
    for row in sum(rows.values(), []):
        if row["layer"] == layer:
            assert row["mean"] is None and row["std"] is None
            assert reason in row["reason"]
            assert (
                f"bert-small 96x4 step 16, encoder layer {layer}, positions {row['positions']}"
                in row["reason"]
            )
        else:
            assert row["mean"] is not None and row["reason"] is None


def test_trap_24_a_nan_makes_its_layer_null_by_name_and_leaves_the_others(tmp_path):
    def spoil(X):
        X[2, :200:7, 1] = np.nan
        X[2, 3, 2] = np.inf

    check_only_layer_fails(rows_of(random_states(tmp_path, spoil)), 2, "values are not finite")


def test_trap_25_a_layer_of_equal_vectors_is_null_with_a_reason_and_leaves_the_others(tmp_path):
    def spoil(X):
        X[0] = 0.1

    check_only_layer_fails(rows_of(random_states(tmp_path, spoil)), 0, "all 200 vectors are equal")


def test_trap_25_fewer_vectors_than_a_batch_are_null_with_a_reason(tmp_path):
    shortest = {"all": 150, "without_first": 136}
    for row in sum(rows_of(random_states(tmp_path, tokens=150)).values(), []):
        assert row["mean"] is row["by_batch"] is None and row["batches"] == 0
        has = f"0 of 3 batches have batch_size 200 vectors, and the shortest has {shortest[row['positions']]}"
        assert f"{has}: the texts are too short" in row["reason"]


@pytest.mark.parametrize("threads", ["1", "3"])
def test_layers_are_in_order_and_the_same_however_many_are_estimated_at_once(tmp_path, monkeypatch, threads):
    found = random_states(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    rows = intrinsic_dimension.rows(found, ["mada"], [])
    assert [(row["layer"], row["positions"]) for row in rows] == [
        (layer, positions) for layer in range(4) for positions in ("all", "without_first")
    ]
    for row in rows:
        batches = [found.vectors("encoder", row["layer"], row["positions"], batch) for batch in range(3)]
        alone = [intrinsic_dimension.estimate(batch, "mada")["mada"] for batch in batches]
        assert row["by_batch"] == pytest.approx(alone, rel=1e-9)


def test_trap_25_fewer_different_vectors_than_neighbours_fail_only_the_estimators_that_need_them(tmp_path):
    def spoil(X):
        X[1] = X[1, np.arange(X.shape[1]) % 50]

    found = random_states(tmp_path, spoil)
    rows = intrinsic_dimension.rows(found, ["twonn", "mada", "mom"], [0.9])
    for row in rows:
        if row["layer"] == 1 and row["estimator"] == "mom":
            assert (
                row["mean"] is None and "mom: 50 different vectors have 49 neighbours each" in row["reason"]
            )
        else:
            assert row["mean"] is not None


def test_trap_24_collecting_logs_a_layer_that_is_not_finite_and_keeps_the_others(states, caplog):
    with caplog.at_level(logging.ERROR):
        found = states(FakeModel(spoilt={3: np.nan}))
    assert "fake 3x4 step 7, model layer 3: " in caplog.text and "not finite" in caplog.text
    assert "layer 2" not in caplog.text
    assert np.isfinite(found.vectors("model", 2, "all")).all()
    assert np.isnan(found.vectors("model", 3, "all")).all()
