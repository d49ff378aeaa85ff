"""One combination, scored by lmshape and by sentence-transformers' mean pooling with mteb over the same table.

Both go from what they keep between combinations to all measures: lmshape from the data set's token counts, the peer
from its texts. 5,000 and 10,000 documents of about 200 tokens, one query to a hundred of them (as FiQA has), and a
float32 table of 50,304 x 1,024; and Cranfield, where it is. mteb's own overhead weighs less with more documents. The
difference is that of nDCG@10; the peak is ours, read before the peer is imported, with what counting tokens took.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import peak_mib, report, timed

from lmshape import retrieval
from lmshape.inputs import datasets, tokens
from lmshape.inputs.datasets import Dataset, Document
from lmshape.inputs.tokens import Counts

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "parity")]
import word_tokenizer  # noqa: E402

CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
ROWS, WIDTH = 50304, 1024
TOPICS = 250
ROUNDS = 4


def synthetic(documents: int, queries: int) -> Dataset:
    """Texts of Zipf-distributed words, a fifth of them from the text's topic; the answers are of the same topic."""
    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(1, ROWS)
    frequency /= frequency.sum()

    def text(topic: int, length: int) -> str:
        words = rng.choice(np.arange(1, ROWS), length, p=frequency)
        about = rng.random(length) < 0.2
        words[about] = 1000 + topic * 20 + rng.integers(0, 20, about.sum())
        return " ".join(f"w{word}" for word in words)

    topics = rng.integers(0, TOPICS, documents)
    asked = rng.integers(0, TOPICS, queries)
    return Dataset(
        [Document(f"d{i}", "", text(topic, int(rng.integers(100, 300)))) for i, topic in enumerate(topics)],
        {f"q{i}": text(topic, 30) for i, topic in enumerate(asked)},
        {f"q{i}": {f"d{j}": 1 for j in np.flatnonzero(topics == topic)} for i, topic in enumerate(asked)},
    )


def peak(dataset: Dataset, counts: Counts, table: np.ndarray) -> float:
    """MiB that this process has taken when it has scored a data set."""
    retrieval.score(counts, [table], dataset.qrels)
    return peak_mib()


def compare(
    name: str, dataset: Dataset, folder: Path, counts: Counts, table: np.ndarray, peak: float
) -> None:
    """Best of a few calls in turn, so that a busy moment hits both."""
    from peers import by_mteb, sentence_transformer

    model = sentence_transformer(table, folder)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours += [timed(lambda: retrieval.score(counts, [table], dataset.qrels)) for _ in range(3)]
        theirs.append(timed(lambda: by_mteb(model, dataset)))
    value, peers = float(ours[0][1].values["ndcg_at_10"].mean()), theirs[0][1]["ndcg_at_10"]
    seconds, peer_seconds = (min(seconds for seconds, _ in calls) for calls in (ours, theirs))
    peer = "sentence-transformers with mteb"
    report(name, seconds, peer, peer_seconds, abs(value - peers), peak, ndcg_at_10=value)


def main(folder: Path) -> None:
    words = word_tokenizer.save(folder, [f"w{number}" for number in range(1, ROWS)])
    sets = [
        ("retrieval", synthetic(5000, 50), words),
        ("retrieval, 10,000 documents", synthetic(10000, 100), words),
    ]
    if CRANFIELD.exists():  # the smaller first: a peak is that of all so far
        t5 = CRANFIELD.parent / "tokenizers" / "t5-v1_1"
        sets.insert(0, ("retrieval, Cranfield", datasets.read(CRANFIELD), t5))
    table = np.random.default_rng(1).standard_normal((ROWS, WIDTH), dtype=np.float32)
    counted = [tokens.count(dataset, tokenizer, name) for name, dataset, tokenizer in sets]
    peaks = [peak(dataset, counts, table) for (_, dataset, _), counts in zip(sets, counted, strict=True)]
    for (name, dataset, tokenizer), counts, mib in zip(sets, counted, peaks, strict=True):
        compare(name, dataset, tokenizer, counts, table, mib)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
