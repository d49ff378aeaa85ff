"""What `suites/<name>.yaml` may say: a family of models, where it comes from and what it looks like."""

import re
from functools import partial
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from lmshape.errors import ConfigError
from lmshape.study import yaml_files
from lmshape.study.strict import Name, OwnPath, Seed, Strict, parse

Architecture = Literal["decoder", "encoder", "encoder-decoder"]
Revision = Annotated[str, Field(min_length=1)]  # the hub would take none for `main`
PADDING = re.compile(r"(0?[0-9]{1,2})?d?")  # of a step, as in {step:06d}


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
    hub: str | dict[int, str] | None = Field(
        None,
        description="Repository (or folder) of the checkpoints, or of each step, where it is not the model's own.",
    )
    revision: Revision | dict[int, Revision] = Field(
        "step{step}",
        description="The hub's name of a step's revision, or the name of its folder in the model's: a pattern with "
        "`{step}` in it, or, where the names hold more than the step, the name of each step. One name will do for "
        "all where `hub` has a repository for each.",
    )

    @field_validator("steps")
    @classmethod
    def expanded(cls, given: list[int | Steps]) -> list[int]:
        steps: list[int] = []
        for part in given:
            ranged = isinstance(part, Steps)
            numbers = range(part.first, part.last + 1, part.every) if ranged else [part]
            if ranged and part.last not in numbers:
                raise ValueError(f"every {part.every} steps from {part.first} on, {part.last} is never met")
            steps.extend(numbers)
        if sorted(set(steps)) != steps or steps[0] < 0:
            raise ValueError("steps must ascend without repeats, from 0 or more")
        return steps

    @field_validator("hub", "revision")
    @classmethod
    def of_each(cls, given: Any, info: ValidationInfo) -> Any:
        if isinstance(given, dict) and list(given) != info.data.get("steps", list(given)):
            raise ValueError(
                "a mapping must have each of the steps, in their order, or give one name for all"
            )
        return given

    @field_validator("revision")
    @classmethod
    def with_the_step(cls, given: Any, info: ValidationInfo) -> Any:
        if isinstance(given, str) and not _holds_step(given) and not isinstance(info.data.get("hub"), dict):
            raise ValueError(
                "without `{step}` in it, every step is one and the same model: put it there, or name the revision of "
                f"each step in a mapping ({info.data.get('steps', [1000])[0]}: ...)"
            )
        return given

    @model_validator(mode="after")
    def apart(self) -> "Checkpoints":
        """Two steps are never one revision: its numbers would be given for both."""
        steps: dict[tuple[str, str], int] = {}
        for step in self.steps:
            if (first := steps.setdefault(source := self.source("the model's own", step), step)) != step:
                raise ValueError(f"steps {first} and {step} are both revision {source[1]} of {source[0]}")
        return self

    def source(self, model: str, step: int) -> tuple[str, str]:
        """(repository, revision) of a step, given the repository, or the folder, of the finished model."""
        repository = self.hub[step] if isinstance(self.hub, dict) else self.hub or model
        named = self.revision[step] if isinstance(self.revision, dict) else self.revision.format(step=step)
        return repository, named


def _holds_step(pattern: str) -> bool:
    """Whether a pattern of revisions has the step in it; ValueError if it has anything else in braces."""
    slip = (
        "in braces there can be `{step}` and no more; where a name holds more, name the revision of each step"
    )
    try:
        fields = [part[1:] for part in Formatter().parse(pattern) if part[1] is not None]
    except ValueError as error:
        raise ValueError(slip) from error
    if not all(name == "step" and PADDING.fullmatch(padding) for name, padding, _ in fields):
        raise ValueError(slip)
    return bool(fields)


class Size(Strict):
    """One model of a suite."""

    parameters: int = Field(
        gt=0,
        description="Number of parameters, as the axis of the figures counts them. It is checked of a model trained "
        "here.",
    )
    width: int = Field(gt=0, description="Width of the stored embedding table (not always the hidden size).")
    vocabulary_rows: int = Field(
        gt=0,
        description="Rows of the embedding table, padding rows included. It and the width are "
        "checked when a table is read.",
    )
    output_width: int | None = Field(
        None,
        gt=0,
        description="Width of the output embedding table, where it differs from that of the input.",
    )
    output_rows: int | None = Field(
        None,
        gt=0,
        description="Rows of the output embedding table, where they differ from those of the input.",
    )
    untied: bool | None = Field(
        None,
        description="Whether the output embedding of this size is a table of its own, where the suite says another.",
    )
    layers: int = Field(gt=0, description="Transformer blocks (of each stack, in an encoder-decoder).")
    heads: int | None = Field(
        None, gt=0, description="Attention heads; needed where the model is trained here."
    )
    hub: str | None = Field(None, description="Repository on the Hugging Face hub, `owner/name`.")
    path: OwnPath | None = Field(
        None,
        description="A folder in transformers' layout or a GGUF file: in the suite's Python package or, without "
        "`package`, of your own, relative to where Snakemake runs.",
    )
    checkpoints: Checkpoints | None = Field(
        None, description="Training checkpoints of this size, where those of the suite differ."
    )

    def shape(self, side: str) -> tuple[int, int]:
        """(rows, width) of the embedding table of a side, `input` or `output`."""
        if side == "input":
            return self.vocabulary_rows, self.width
        return self.output_rows or self.vocabulary_rows, self.output_width or self.width


class Pretraining(Strict):
    """How a suite is trained by the workflow itself; its steps are the suite's checkpoints."""

    model_type: Literal["gpt_neox", "bert"] = Field(description="transformers' name of the model class.")
    sequence_length: int = Field(
        128, ge=8, description="Tokens in a training sequence, at most, special tokens included."
    )
    batch_size: int = Field(16, ge=1, description="Sequences in a training step.")
    learning_rate: float = Field(
        1e-3, gt=0, description="Peak learning rate (AdamW, cosine decay to a tenth)."
    )
    warmup: int = Field(10, ge=0, description="Steps of linear warm-up.")
    weight_decay: float = Field(0.1, ge=0, description="Weight decay of matrices.")
    seed: Seed = Field(0, description="Seed of initial weights, order of the text and masks.")

    @property
    def untied(self) -> bool:
        """Whether the output embedding of the models is a table of its own."""
        return self.model_type == "gpt_neox"

    def parameters(self, size: Size) -> int:
        """How many the model has that `lmshape.models.pretraining.build` makes of a size.

        Counted from its shape, as this is read in every cluster job, and a model takes torch.
        """
        width = size.width
        table = size.vocabulary_rows * width
        # matrices of attention (4) and of a feed-forward four times as wide (8), their biases (9), two norms (4)
        blocks = size.layers * (12 * width**2 + 13 * width)
        if self.model_type == "gpt_neox":
            return 2 * table + blocks + 2 * width  # a norm at the end
        embedded = table + (self.sequence_length + 2) * width + 2 * width  # positions, two segments, a norm
        return embedded + blocks + width**2 + 3 * width + size.vocabulary_rows  # head: matrix, norm, biases


class Suite(Strict):
    """A model family: where its models come from and what they look like."""

    name: Name = Field(description="Name of the suite; the file is `suites/<name>.yaml`.")
    title: str = Field(description="The name readers know.")
    architecture: Architecture = Field(description="decoder, encoder or encoder-decoder.")
    tokenizer: Name = Field(description="Suites that name the same tokenizer share its token counts.")
    tokenizer_from: Name | None = Field(
        None, description="The suite whose first size the tokenizer is read from, where it is not this suite."
    )
    untied: bool = Field(
        False,
        description="Whether the output embedding is a table of its own. It is checked when a table is read.",
    )
    package: str | None = Field(None, description="Python package that ships the models.")
    pretraining: Pretraining | None = Field(None, description="How the workflow trains this suite itself.")
    checkpoints: Checkpoints | None = Field(
        None, description="Training checkpoints, where the suite has them."
    )
    sizes: dict[Name, Size] = Field(min_length=1, description="The models, from small to large.")

    @property
    def source(self) -> Literal["package", "pretraining", "local", "hub"]:
        if self.package or self.pretraining:
            return "package" if self.package else "pretraining"
        return "local" if any(size.path for size in self.sizes.values()) else "hub"

    @property
    def tokenizer_suite(self) -> str:
        """The suite that the tokenizer is read from."""
        return self.tokenizer_from or self.name

    def checkpoints_of(self, size: str) -> Checkpoints | None:
        """The training checkpoints of a size: its own, or else the suite's."""
        return self.sizes[size].checkpoints or self.checkpoints

    def untied_at(self, size: str) -> bool:
        """Whether the output embedding of a size is a table of its own: by its own word, or else the suite's."""
        own = self.sizes[size].untied
        return self.untied if own is None else own

    def path_of(self, size: str, step: int | None) -> str:
        """Where a model of the user's own lies, finished or at a training step."""
        path = self.sizes[size].path
        return path if step is None else "/".join(self.checkpoints_of(size).source(path, step))

    @property
    def final(self) -> str:
        """The checkpoint that is the finished model."""
        return f"step{self.checkpoints.steps[-1]}" if self.pretraining else "main"

    @model_validator(mode="after")
    def complete(self) -> "Suite":
        needed = {"package": "path", "pretraining": "heads", "local": "path", "hub": "hub"}[self.source]
        for name, size in self.sizes.items():
            if getattr(size, needed) is None:
                raise ValueError(f"size {name} needs `{needed}`, because the suite's source is {self.source}")
            if size.shape("output") != size.shape("input") and not self.untied_at(name):
                raise ValueError(
                    f"size {name} has an output table of another shape, so of its own: write `untied: true`, or "
                    "leave out `output_width` and `output_rows`"
                )
        if self.pretraining and not self.checkpoints:
            raise ValueError("a suite with `pretraining` needs `checkpoints`: the steps to keep")
        return self

    def require_true(self) -> None:
        """ConfigError where a size says of the model that is trained here what is not so."""
        for name, size in self.sizes.items() if self.pretraining else ():
            facts = (
                ("parameters", size.parameters, self.pretraining.parameters(size)),
                ("untied", self.untied_at(name), self.pretraining.untied),
                ("the shape of the output table", size.shape("output"), size.shape("input")),
            )
            for key, said, true in facts:
                if said != true:
                    raise ConfigError(
                        f"suite {self.name}, size {name}: {key} is {said}, and the model that is trained has {true}"
                    )


def load_suites(folder: Path) -> dict[str, Suite]:
    """Every suite described in `folder`, by name."""
    suites = {}
    for path in sorted(
        folder.glob("[!.]*.yaml")
    ):  # editors and other systems leave files that begin with a dot
        suite = parse(Suite, yaml_files.read(path), path.name, partial(yaml_files.line_of, path))
        if suite.name != path.stem:
            raise ConfigError(
                f"{path.name}: name is {suite.name!r}; it must be {path.stem!r}, as the file is"
            )
        suites[suite.name] = suite
    refuse_two_sources(suites)
    return suites


def refuse_two_sources(suites: dict[str, Suite]) -> None:
    """ConfigError where suites with one tokenizer do not all read it from one of them.

    Which one is said in the suites' files, so that no study changes it: counts would be stale whenever a suite came.
    """
    sharing: dict[str, list[str]] = {}
    for name, suite in suites.items():
        sharing.setdefault(suite.tokenizer, []).append(name)
    for tokenizer, names in sharing.items():
        sources = sorted({suites[name].tokenizer_suite for name in names})
        if len(sources) > 1 or sources[0] not in names:
            raise ConfigError(
                f"tokenizer {tokenizer}: the suites {', '.join(names)} read it from {', '.join(sources)}; "
                "name one of these suites as `tokenizer_from` in all the others"
            )
