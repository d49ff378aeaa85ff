"""One combination, scored by lmshape and by sentence-transformers' mean pooling with mteb over the same table.

Both go from what they keep between combinations to all measures: lmshape from the data set's token counts, the peer
from its texts. 10,000 documents of about 200 tokens and 100 queries (FiQA has as many documents to a query), a
float32 table of 50,304 x 1,024; and Cranfield, where it is. The difference is that of nDCG@10; the peak is of both.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import peak_mib, report, timed

from lmshape import retrieval
from lmshape.inputs import datasets, tokens
from lmshape.inputs.datasets import Dataset, Document

ROOT = Path(__file__).resolve().parents[1]
CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
ROWS, WIDTH = 50304, 1024
TOPICS = 250
ROUNDS = 2


def tokenizer(folder: Path) -> Path:
    """A tokenizer of whole words, w0 to w50302 and one for the unknown."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {"<unk>": 0} | {f"w{i}": i for i in range(1, ROWS)}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "pad_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def synthetic(documents: int = 10000, queries: int = 100) -> Dataset:
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


def compare(name: str, dataset: Dataset, folder: Path) -> None:
    """Best of a few calls in turn, so that a busy moment hits both."""
    sys.path.insert(0, str(ROOT / "tests" / "parity"))
    from peers import by_mteb, sentence_transformer

    counts = tokens.count(dataset, folder, "words")
    table = np.random.default_rng(1).standard_normal((ROWS, WIDTH), dtype=np.float32)
    model = sentence_transformer(table, folder)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours += [timed(lambda: retrieval.score(counts, [table], dataset.qrels)) for _ in range(3)]
        theirs.append(timed(lambda: by_mteb(model, dataset)))
    value, peers = float(ours[0][1].values["ndcg_at_10"].mean()), theirs[0][1]["ndcg_at_10"]
    seconds, peer_seconds = (min(seconds for seconds, _ in calls) for calls in (ours, theirs))
    peer = "sentence-transformers with mteb"
    report(name, seconds, peer, peer_seconds, abs(value - peers), peak_mib(), ndcg_at_10=value)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        folder = tokenizer(Path(scratch))
        if CRANFIELD.exists():
            compare(
                "retrieval, Cranfield", datasets.read(CRANFIELD), CRANFIELD.parent / "tokenizers" / "t5-v1_1"
            )
        compare("retrieval", synthetic(), folder)
