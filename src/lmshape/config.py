"""What a study and a suite may say: typed, described, and closed to unknown keys.

`docs/configuration.md` and the JSON Schemas beside it are generated from the models here
(`python docs/generate.py`).
"""

import difflib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lmshape.ablation_names import Ablation
from lmshape.errors import ConfigError

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Architecture = Literal["decoder", "encoder", "encoder-decoder"]


class Strict(BaseModel):
    """A section that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# --- suites: suites/<name>.yaml ------------------------------------------------------------------------


class Steps(Strict):
    """Training steps at equal distances, both ends included."""

    first: int = Field(ge=0, description="The first step.")
    last: int = Field(ge=0, description="The last step.")
    every: int = Field(gt=0, description="Distance between steps.")


class Checkpoints(Strict):
    """Revisions of a model by training step."""

    steps: list[int | Steps] = Field(
        min_length=1, description="Training steps, ascending: numbers, and ranges, which become numbers."
    )
    revision: str = Field("step{step}", description="The hub's name of a step's revision.")
    hub: str | dict[int, str] | None = Field(
        None, description="Repository of the checkpoints, or of each step, where it is not the model's own."
    )

    @field_validator("steps")
    @classmethod
    def expanded(cls, given: list[int | Steps]) -> list[int]:
        steps: list[int] = []
        for part in given:
            ranged = isinstance(part, Steps)
            steps.extend(range(part.first, part.last + 1, part.every) if ranged else [part])
        if sorted(set(steps)) != steps:
            raise ValueError("steps must ascend without repeats")
        return steps

    @model_validator(mode="after")
    def placed(self) -> "Checkpoints":
        if isinstance(self.hub, dict) and list(self.hub) != self.steps:
            raise ValueError(
                "hub must name a repository for each of the steps, in their order, or one for all"
            )
        return self

    def source(self, model: str, step: int) -> tuple[str, str]:
        """(repository, revision) of a step, given the repository of the finished model."""
        repository = self.hub[step] if isinstance(self.hub, dict) else self.hub or model
        return repository, self.revision.format(step=step)


class Size(Strict):
    """One model of a suite."""

    parameters: int = Field(gt=0, description="Number of parameters, as the axis of the figures counts them.")
    width: int = Field(gt=0, description="Width of the stored embedding table (not always the hidden size).")
    vocabulary_rows: int = Field(gt=0, description="Rows of the embedding table, padding rows included.")
    layers: int = Field(gt=0, description="Transformer blocks (of each stack, in an encoder-decoder).")
    heads: int | None = Field(
        None, gt=0, description="Attention heads; needed where the model is trained here."
    )
    hub: str | None = Field(None, description="Repository on the Hugging Face hub, `owner/name`.")
    path: str | None = Field(None, description="File or folder inside the suite's Python package.")
    checkpoints: Checkpoints | None = Field(
        None, description="Training checkpoints of this size, where those of the suite differ."
    )


class Pretraining(Strict):
    """How a suite is trained by the workflow itself; its steps are the suite's checkpoints."""

    model_type: Literal["gpt_neox", "bert"] = Field(description="transformers' name of the model class.")
    sequence_length: int = Field(128, ge=8, description="Tokens in a training sequence.")
    batch_size: int = Field(16, ge=1, description="Sequences in a training step.")
    learning_rate: float = Field(
        1e-3, gt=0, description="Peak learning rate (AdamW, cosine decay to a tenth)."
    )
    warmup: int = Field(10, ge=0, description="Steps of linear warm-up.")
    weight_decay: float = Field(0.1, ge=0, description="Weight decay of matrices.")
    seed: int = Field(0, ge=0, description="Seed of initial weights, order of the text and masks.")


class Suite(Strict):
    """A model family: where its models come from and what they look like."""

    name: Name = Field(description="Name of the suite; the file is `suites/<name>.yaml`.")
    title: str = Field(description="The name readers know.")
    architecture: Architecture = Field(description="decoder, encoder or encoder-decoder.")
    tokenizer: Name = Field(description="Suites that name the same tokenizer share its token counts.")
    untied: bool = Field(False, description="Whether the output embedding is a table of its own.")
    package: str | None = Field(None, description="Python package that ships the models.")
    pretraining: Pretraining | None = Field(None, description="How the workflow trains this suite itself.")
    checkpoints: Checkpoints | None = Field(
        None, description="Training checkpoints, where the suite has them."
    )
    sizes: dict[Name, Size] = Field(min_length=1, description="The models, from small to large.")

    @property
    def source(self) -> Literal["package", "pretraining", "hub"]:
        return "package" if self.package else "pretraining" if self.pretraining else "hub"

    def checkpoints_of(self, size: str) -> Checkpoints | None:
        """The training checkpoints of a size: its own, or else the suite's."""
        return self.sizes[size].checkpoints or self.checkpoints

    @property
    def final(self) -> str:
        """The checkpoint that is the finished model."""
        return f"step{self.checkpoints.steps[-1]}" if self.pretraining else "main"

    @model_validator(mode="after")
    def complete(self) -> "Suite":
        needed = {"package": "path", "pretraining": "heads", "hub": "hub"}[self.source]
        for name, size in self.sizes.items():
            if getattr(size, needed) is None:
                raise ValueError(f"size {name} needs `{needed}`, because the suite's source is {self.source}")
        if self.pretraining and not self.checkpoints:
            raise ValueError("a suite with `pretraining` needs `checkpoints`: the steps to keep")
        return self


# --- studies: config.yaml, studies/*.yaml --------------------------------------------------------------


class Selection(Strict):
    """The models of one suite that a measure looks at."""

    sizes: list[Name] | Literal["all"] = Field("all", description="Sizes of the suite, or `all`.")
    checkpoints: list[int] | Literal["final", "all"] = Field(
        "final",
        description="`final` (the finished model), `all`, or training steps (the final model is kept).",
    )


Models = dict[Name, Selection]
Side = Literal["input", "output"]
SIDES = "Embedding tables to score: input, output (where a model has its own)."


class PackageDocumentation(Strict):
    """Retrieval of documentation by its summary line, built from docstrings of the pinned packages."""

    source: Literal["package-documentation"]
    packages: list[str] = Field(min_length=1, description="Installed packages whose docstrings are read.")
    queries: int = Field(400, ge=1, description="Queries, at most.")


class MtebTask(Strict):
    """A retrieval task of mteb, by name."""

    source: Literal["mteb"]
    task: str = Field(description="Name of the task, e.g. SCIDOCS.")


class BeirFolder(Strict):
    """A folder in BEIR layout: corpus.jsonl, queries.jsonl, qrels/test.tsv."""

    source: Literal["folder"]
    path: str = Field(description="The folder, relative to where Snakemake runs.")


RetrievalDataset = Annotated[PackageDocumentation | MtebTask | BeirFolder, Field(discriminator="source")]


class RandomBaseline(Strict):
    """Random tables by tokenizer, with no model at all."""

    widths: list[int] = Field(min_length=1, description="Widths to score; all come from one pass.")
    seeds: list[int] = Field(min_length=1, description="Seeds of the random tables.")


class Retrieval(Strict):
    """Embedding tables, mean pooled, scored on retrieval."""

    models: Models = Field(min_length=1, description="Which models' tables are scored.")
    datasets: dict[Name, RetrievalDataset] = Field(min_length=1, description="Retrieval data sets by name.")
    ablations: list[str] = Field(["original"], description="Ablations of each final model's table.")
    checkpoint_ablations: list[str] = Field(
        ["original"], description="Ablations of the tables of checkpoints before the final one."
    )
    sides: list[Side] = Field(["input"], description=SIDES)
    seeds: list[int] = Field([0, 1], description="Seeds of the ablations that draw numbers.")
    max_length: int = Field(2048, ge=1, description="Tokens of a text beyond this many are cut.")
    precision: Literal["float32", "published"] = Field(
        "float32", description="`published` rounds to bfloat16 where the seed study's code did."
    )
    bootstrap: int = Field(1000, ge=2, description="Resamples of the queries for the standard error.")
    random_baseline: RandomBaseline | None = Field(None, description="The random baseline by tokenizer.")
    tasks: list[str] = Field(
        [],
        description="Other tasks of mteb, by name, that the same tables are scored on as they are, e.g. STS12.",
    )

    @field_validator("ablations", "checkpoint_ablations")
    @classmethod
    def known(cls, names: list[str]) -> list[str]:
        for name in names:
            Ablation.parse(name)
        return names


class WikipediaExtract(Strict):
    """The shortened English Wikipedia dump that gensim ships for its tests."""

    source: Literal["wikipedia-extract"]


class Enwik8(Strict):
    """The first 100 MB of English Wikipedia (the seed study's text), downloaded and checked."""

    source: Literal["enwik8"]


class TextFile(Strict):
    """A plain-text file; articles are separated by blank lines."""

    source: Literal["file"]
    path: str = Field(description="The file, relative to where Snakemake runs.")


class Text(Strict):
    """The text that models read: for hidden states, and for the pre-training of small suites."""

    corpus: Annotated[WikipediaExtract | Enwik8 | TextFile, Field(discriminator="source")] = Field(
        description="Where the text comes from."
    )
    held_out: float = Field(
        1.0, gt=0, le=1, description="Share of articles kept for hidden states; the rest may be trained on."
    )


class HiddenStates(Strict):
    """Token vectors at every layer, and how many are kept."""

    models: Models = Field(min_length=1, description="Which models are run.")
    sequence_length: int = Field(512, ge=2, description="Tokens a model reads at once.")
    batch_size: int = Field(
        4096, ge=16, description="Vectors in a batch; a measure is the mean over batches."
    )
    batches: int = Field(4, ge=1, description="Batches.")
    tokens: int = Field(
        65536, ge=16, description="Tokens of text that are run, of which vectors are sampled."
    )
    dtype: Literal["float32", "bfloat16", "float16"] = Field("float32", description="Precision of the model.")
    seed: int = Field(0, ge=0, description="Seed of the sample of token positions.")

    @model_validator(mode="after")
    def enough(self) -> "HiddenStates":
        if self.tokens < self.batches * self.batch_size:
            raise ValueError(
                f"tokens ({self.tokens}) must be at least batches x batch_size ({self.batches} x {self.batch_size})"
            )
        return self


class IntrinsicDimension(Strict):
    """Estimators of intrinsic dimension."""

    estimators: list[Literal["twonn", "mada", "mom"]] = Field(
        ["twonn", "mada", "mom"], min_length=1, description="Estimators to compute."
    )
    fractions: list[Annotated[float, Field(gt=0, lt=1)]] = Field(
        [0.9], description="Share of the smallest ratios TwoNN fits: 0.9 (Facco), 0.2 (llm-microscope)."
    )


class WordSimilarity(Strict):
    """Human word similarity against the cosine of table rows."""

    models: Models = Field(min_length=1, description="Which models' tables are scored.")
    datasets: dict[Name, str] = Field(
        min_length=1,
        description="Name to a file of word pairs, or to one in gensim's test data (wordsim353.tsv, simlex999.txt).",
    )
    sides: list[Side] = Field(["input"], description=SIDES)


class Study(Strict):
    """One study: what is measured, on which models, with which data."""

    study: Name = Field(description="Name of the study; everything goes to `results/<study>/`.")
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


# --- reading -------------------------------------------------------------------------------------------


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected a mapping of keys to values")
    return content


def parse(model: type[BaseModel], content: dict[str, Any], source: str) -> Any:
    """`content` as a `model`; ConfigError lists every mistake with its key and what is allowed there."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = [f"  {describe(model, mistake)}" for mistake in error.errors()]
        raise ConfigError("\n".join([f"{source} cannot be used:", *lines])) from None


def describe(model: type[BaseModel], mistake: dict[str, Any]) -> str:
    """One line for one mistake: the key, what is wrong, and what would be right."""
    where = ".".join(str(part) for part in mistake["loc"]) or "the file"
    if mistake["type"] == "extra_forbidden":
        allowed = keys_at(model, mistake["loc"][:-1])
        return f"{where}: there is no such key{closest(str(mistake['loc'][-1]), allowed)}"
    message = mistake["msg"].removeprefix("Value error, ")
    given = "" if mistake["type"] == "missing" else f" (given: {mistake['input']!r})"
    return f"{where}: {message}{given if len(given) < 80 else ''}"


def closest(word: str, allowed: list[str]) -> str:
    """`; did you mean x? allowed: x, y, z`."""
    near = difflib.get_close_matches(word, allowed, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else ";"
    return f"{hint} allowed: {', '.join(allowed)}"


def keys_at(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """The keys of the section that `loc` leads to."""
    sections = [model]
    for part in loc:
        fields = [s.model_fields[part].annotation for s in sections if part in s.model_fields]
        if fields:  # a part that names no field is the key of a mapping, or the tag of a union
            sections = [found for field in fields for found in models_in(field)]
        elif part in map(tag, sections):
            sections = [s for s in sections if tag(s) == part]
    return sorted({key for section in sections for key in section.model_fields})


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Every model class inside a type such as `dict[str, Selection] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in models_in(part)]


def tag(section: type[BaseModel]) -> str | None:
    """The value of a section's `source` that tells it from its siblings."""
    field = section.model_fields.get("source")
    return get_args(field.annotation)[0] if field else None


def load_suites(folder: Path) -> dict[str, Suite]:
    """Every suite described in `folder`, by name."""
    suites = {}
    for path in sorted(folder.glob("*.yaml")):
        suite = parse(Suite, read_yaml(path), str(path.name))
        if suite.name != path.stem:
            raise ConfigError(
                f"{path.name}: name is {suite.name!r}; it must be {path.stem!r}, as the file is"
            )
        suites[suite.name] = suite
    return suites


def load_study(config: dict[str, Any], default: Path) -> Study:
    """The study that Snakemake's `config` describes.

    `--configfile` names a whole study, which is used as it is; without one, `config` holds only the keys of
    `--config`, which replace those of the `default` file. Lists and mappings of one study therefore never
    merge into another's.
    """
    if "study" in config:
        return parse(Study, config, f"study {config['study']!r}")
    return parse(Study, {**read_yaml(default), **config}, default.name)
