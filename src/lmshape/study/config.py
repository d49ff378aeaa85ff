"""What a study may say: `config.yaml`, or any file that `--configfile` names.

`docs/configuration.md` and the JSON Schemas beside it are generated from the models here and in
`lmshape.study.suites` (`python docs/generate.py`).
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from lmshape.errors import ConfigError
from lmshape.study import yaml_files
from lmshape.study.ablation_names import RANDOM_WIDTH, Ablation
from lmshape.study.estimator_settings import FACCO, FRACTIONS, LLM_MICROSCOPE, NEIGHBORS
from lmshape.study.strict import Name, OwnPath, Seed, Strict, parse


class Selection(Strict):
    """The models of one suite that a measure looks at."""

    sizes: Annotated[list[Name], Field(min_length=1)] | Literal["all"] = Field(
        "all", description="Sizes of the suite, or `all`."
    )
    checkpoints: list[int] | Literal["final", "all"] = Field(
        "final",
        description="`final` (the finished model), `all`, or training steps (the final model is kept).",
    )


# `minilm:` alone is the natural way to write that all of a suite is as usual
Models = dict[Name, Annotated[Selection, BeforeValidator(lambda given: {} if given is None else given)]]
Side = Literal["input", "output"]
WORD_PAIRS = ("wordsim353.tsv", "simlex999.txt")  # files of word pairs in gensim's test data
SIDES = "Embedding tables to score: input, output (where a model has its own)."


class PackageDocumentation(Strict):
    """Retrieval of documentation by its summary line, built from docstrings of the pinned packages."""

    made_by: ClassVar[str] = "inputs.package_documentation.write"
    source: Literal["package-documentation"]
    packages: list[str] = Field(min_length=1, description="Installed packages whose docstrings are read.")
    queries: int = Field(400, ge=1, description="Queries, at most.")


class MtebTask(Strict):
    """A retrieval task of mteb, by name."""

    made_by: ClassVar[str] = "inputs.datasets.export_mteb"
    source: Literal["mteb"]
    task: str = Field(
        description="Name of the task, e.g. SCIDOCS, or name:subset of a task of several. Whether a query's own "
        "document is an answer to it is as mteb has it."
    )
    split: str | None = Field(
        None,
        description="Split of the task, e.g. dev; left out, test, or else the first that mteb evaluates.",
    )


class BeirFolder(Strict):
    """A folder in BEIR layout: corpus.jsonl, queries.jsonl, qrels/test.tsv."""

    made_by: ClassVar[str] = "inputs.datasets.copy_beir"
    source: Literal["folder"]
    path: OwnPath = Field(description="The folder, relative to where Snakemake runs.")
    drop_self: bool = Field(
        False,
        description="A document whose id is the query's own is no answer to it: true for ArguAna and Quora, whose "
        "queries are among their documents.",
    )

    @property
    def files(self) -> list[str]:
        return [f"{self.path}/{name}" for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")]


RetrievalDataset = Annotated[PackageDocumentation | MtebTask | BeirFolder, Field(discriminator="source")]


class RandomBaseline(Strict):
    """Random tables by tokenizer, with no model at all."""

    widths: list[Annotated[int, Field(ge=1, le=RANDOM_WIDTH)]] = Field(
        min_length=1, description=f"Widths to score, up to {RANDOM_WIDTH}; all come from one pass."
    )
    seeds: list[Seed] = Field(min_length=1, description="Seeds of the random tables, 0 or more.")
    rows: dict[Name, Annotated[int, Field(ge=1)]] = Field(
        {},
        description="Tokenizer to the rows of its random tables; those of the others are as many as the widest "
        "vocabulary among the study's models with the tokenizer has.",
    )


class Retrieval(Strict):
    """Embedding tables, mean pooled, scored on retrieval."""

    models: Models = Field(min_length=1, description="Which models' tables are scored.")
    datasets: dict[Name, RetrievalDataset] = Field({}, description="Retrieval data sets by name.")
    ablations: list[str] = Field(
        ["original"], min_length=1, description="Ablations of each final model's table."
    )
    checkpoint_ablations: list[str] = Field(
        ["original"], min_length=1, description="Ablations of the tables of checkpoints before the final one."
    )
    sides: list[Side] = Field(["input"], min_length=1, description=SIDES)
    seeds: list[Seed] = Field(
        [0, 1], min_length=1, description="Seeds of the ablations that draw numbers, 0 or more."
    )
    max_length: int = Field(2048, ge=1, description="Tokens of a text beyond this many are cut.")
    precision: Literal["float32", "published"] = Field(
        "float32", description="`published` rounds tables to bfloat16, as the published study's code did."
    )
    bootstrap: int = Field(1000, ge=2, description="Resamples of the queries for the standard error.")
    random_baseline: RandomBaseline | None = Field(None, description="The random baseline by tokenizer.")
    tasks: list[Name] = Field(
        [],
        description="Other tasks of mteb, by name, that the same tables are scored on as they are, e.g. STS12. There "
        "must be a task or a data set.",
    )

    @field_validator("ablations", "checkpoint_ablations")
    @classmethod
    def known(cls, names: list[str]) -> list[str]:
        for name in names:
            Ablation.parse(name)
        return names

    @model_validator(mode="after")
    def scored_on_something(self) -> "Retrieval":
        if not (self.datasets or self.tasks):
            raise ValueError("give `datasets`, or other tasks of mteb under `tasks`, or both")
        for key in () if self.datasets else ("ablations", "checkpoint_ablations", "random_baseline"):
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(
                    f"`{key}` is of data sets, and there are no `datasets`: tasks are scored on tables as they are"
                )
        return self


class WikipediaExtract(Strict):
    """The shortened English Wikipedia dump that gensim ships for its tests."""

    read_by: ClassVar[str] = "inputs.text.wikipedia_extract"
    source: Literal["wikipedia-extract"]


class Enwik8(Strict):
    """The first 100 MB of English Wikipedia (the published study's text), downloaded and checked."""

    read_by: ClassVar[str] = "inputs.text.enwik8"
    source: Literal["enwik8"]


class TextFile(Strict):
    """A plain-text file; articles are separated by blank lines."""

    read_by: ClassVar[str] = "inputs.text.read_plain"
    source: Literal["file"]
    path: OwnPath = Field(description="The file, relative to where Snakemake runs.")


Corpus = Annotated[WikipediaExtract | Enwik8 | TextFile, Field(discriminator="source")]


class Text(Strict):
    """The text that models read: for hidden states, and for the pre-training of small suites."""

    corpus: Corpus = Field(description="Where the text comes from.")
    held_out: float = Field(
        1.0, gt=0, le=1, description="Share of articles kept for hidden states; the rest may be trained on."
    )


class HiddenStates(Strict):
    """Token vectors at every layer, and how many are kept."""

    models: Models = Field(min_length=1, description="Which models are run.")
    sequence_length: int = Field(
        512, ge=2, description="Tokens a model reads at once, special ones included."
    )
    batch_size: int = Field(
        4096, ge=16, description="Vectors in a batch; a measure is the mean over batches."
    )
    batches: int = Field(
        4,
        ge=1,
        description="Batches, no two of which share a text: errors are those of their spread over texts. From two or "
        "three they are wide, and from one there are none.",
    )
    tokens: int = Field(
        65536,
        ge=16,
        description="Tokens of text that are run, as many for each batch, of which vectors are sampled.",
    )
    dtype: Literal["float32", "bfloat16", "float16"] = Field("float32", description="Precision of the model.")
    seed: Seed = Field(0, description="Seed of the sample of token positions.")

    @model_validator(mode="after")
    def enough(self) -> "HiddenStates":
        if self.tokens < self.batches * self.batch_size:
            raise ValueError(
                f"tokens ({self.tokens}) must be at least batches x batch_size ({self.batches} x {self.batch_size})"
            )
        return self


class Neighbors(Strict):
    """How many nearest neighbours an estimator looks at; scikit-dimension's choice by default."""

    mada: int = Field(NEIGHBORS["mada"], ge=6, multiple_of=2, description="Of MADA.")
    mom: int = Field(NEIGHBORS["mom"], ge=4, description="Of the method of moments.")


Fraction = Literal["facco", "llm-microscope"] | Annotated[float, Field(gt=0, lt=1)]


class IntrinsicDimension(Strict):
    """Estimators of intrinsic dimension."""

    estimators: list[Literal["twonn", "mada", "mom"]] = Field(
        ["twonn", "mada", "mom"], min_length=1, description="Estimators to compute."
    )
    fractions: list[Fraction] = Field(
        [LLM_MICROSCOPE, FACCO],
        min_length=1,
        description="Share of the smallest ratios TwoNN fits; `facco` is 0.9, `llm-microscope` 0.2.",
    )
    figure_fraction: Fraction | None = Field(
        None,
        description="The one of them that figures show; left out, `llm-microscope` if it is one, else the smallest.",
    )
    neighbors: Neighbors = Field(
        default_factory=Neighbors, description="Neighbours that MADA and the method of moments look at."
    )

    @property
    def looked_at(self) -> dict[str, int]:
        """How many neighbours each of the chosen estimators looks at."""
        chosen = NEIGHBORS | self.neighbors.model_dump()
        return {name: chosen[name] for name in self.estimators}

    @field_validator("fractions")
    @classmethod
    def numbers(cls, given: list[str | float]) -> list[float]:
        return list(dict.fromkeys(FRACTIONS.get(choice, choice) for choice in given))

    @model_validator(mode="after")
    def computed(self) -> "IntrinsicDimension":
        if self.drawn_fraction not in self.fractions:
            raise ValueError(f"`figure_fraction` {self.figure_fraction} is none of the `fractions`")
        return self

    @property
    def drawn_fraction(self) -> float:
        """The fraction that figures show."""
        if self.figure_fraction is not None:
            return FRACTIONS.get(self.figure_fraction, self.figure_fraction)
        return LLM_MICROSCOPE if LLM_MICROSCOPE in self.fractions else min(self.fractions)


class WordSimilarity(Strict):
    """Human word similarity against the cosine of table rows."""

    models: Models = Field(min_length=1, description="Which models' tables are scored.")
    datasets: dict[Name, OwnPath] = Field(
        min_length=1,
        description="Name to a file of word pairs, relative to where Snakemake runs, or to one in gensim's test "
        f"data: {' or '.join(WORD_PAIRS)}.",
    )
    sides: list[Side] = Field(["input"], min_length=1, description=SIDES)


class Study(Strict):
    """One study: what is measured, on which models, with which data."""

    study: Name = Field(
        description="Name of the study: letters, digits, `.`, `_`, `-`. Everything goes to `results/<study>/`."
    )
    title: str = Field(description="Title of the report.")
    text: Text | None = Field(None, description="Text for hidden states and pre-training.")
    retrieval: Retrieval | None = Field(None, description="Embedding retrieval; left out, it is not run.")
    word_similarity: WordSimilarity | None = Field(
        None, description="Word similarity by embedding table; left out, it is not run."
    )
    hidden_states: HiddenStates | None = Field(
        None, description="Layerwise geometry; left out, it is not run."
    )
    intrinsic_dimension: IntrinsicDimension = Field(
        default_factory=IntrinsicDimension, description="Intrinsic dimension of the hidden states."
    )


def load_study(changes: dict[str, Any], default: Path, files: Sequence[str | Path] = ()) -> Study:
    """The study of the file that `--configfile` names, or of the `default` one.

    `changes` are the keys of `--config`, each of which replaces the one of the file. Lists and mappings of one
    study therefore never merge into another's. ConfigError for two files or for what no study may say.
    """
    if len(files) > 1:
        names = " and ".join(map(str, files))
        raise ConfigError(f"--configfile: give one study, not {names} (targets go before --configfile)")
    file = Path(files[0]) if files else default
    given = f" with --config {' '.join(changes)}" if changes else ""

    def line(place: tuple[str | int, ...]) -> int | None:
        return None if place[0] in changes else yaml_files.line_of(file, place)

    return parse(Study, {**yaml_files.read(file), **changes}, f"{file.name}{given}", line)


def own_files(study: Study) -> dict[str, list[str]]:
    """The files of the user's own that the study reads, by the key that names them."""
    files = {}
    if study.text and study.text.corpus.source == "file":
        files["text.corpus.path"] = [study.text.corpus.path]
    for name, dataset in study.retrieval.datasets.items() if study.retrieval else ():
        if dataset.source == "folder":
            files[f"retrieval.datasets.{name}.path"] = dataset.files
    for name, path in study.word_similarity.datasets.items() if study.word_similarity else ():
        if path not in WORD_PAIRS or os.path.isfile(path):
            files[f"word_similarity.datasets.{name}"] = [path]
    return files


def require_files(study: Study) -> None:
    """ConfigError where a file of the user's own that the study reads is not there.

    Snakemake would not say so once there are results: it takes one whose input is gone for finished.
    """
    missing = [
        f"{key}: {_why_not(path)}{_NAMED if key.startswith('word') else ''}"
        for key, paths in own_files(study).items()
        for path in paths
        if not os.path.isfile(path)  # also one that may not be looked at
    ]
    if missing:
        raise ConfigError("\n".join(missing))


_NAMED = f"; gensim's test data has {' and '.join(WORD_PAIRS)}"


def _why_not(path: str) -> str:
    """Why a path is not that of a file."""
    if os.path.isdir(path):
        return f"{path} is a folder, and a file is wanted"
    home = "; `~` is not read as your home folder: write the path out" if path.startswith("~") else ""
    return f"there is no file {path} (relative to {Path.cwd()}){home}"
