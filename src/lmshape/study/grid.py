"""The grid of a study: which models, which combinations, and which of those are pruned.

Imported by the Snakefile, so by every cluster job: light imports only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from lmshape.errors import ConfigError, LmshapeError
from lmshape.inputs import local_models
from lmshape.study.ablation_names import Ablation
from lmshape.study.config import Models, Study
from lmshape.study.strict import closest
from lmshape.study.suites import Suite

# Tables of what is told of other tables: their rows come as one file to a suite (to a data set, for `published`)
SUMMARIES = ("comparisons", "published", "anisotropy_bells", "dimension_over_training")
OF_HIDDEN_STATES = ("anisotropy", "intrinsic_dimension")  # tables of measures of them
NO_SEED = "none"  # the seed of an ablation that draws no numbers, in paths
# mteb's name of the data set of which `lmshape.report.published` has printed numbers, and the suites it has them of
PUBLISHED_TASK = "SCIDOCS"
PUBLISHED_SUITES = ("pythia", "opt", "cerebras-gpt", "bloom", "t5-v1_1")


@dataclass(frozen=True, order=True)
class Model:
    """One checkpoint of one size of one suite."""

    suite: str
    size: str
    checkpoint: str

    @property
    def step(self) -> int | None:
        """Training step; None where the checkpoint is not one."""
        return int(self.checkpoint.removeprefix("step")) if self.checkpoint.startswith("step") else None

    def __str__(self) -> str:
        return f"{self.suite}/{self.size}/{self.checkpoint}"


@dataclass(frozen=True, order=True)
class Combination:
    """One table, ablated, scored on one data set by a measure: retrieval, mteb_tasks or word_similarity."""

    measure: str
    dataset: str
    model: Model
    side: str
    ablation: str = "original"
    seed: str = NO_SEED

    @property
    def path(self) -> str:
        """The file of its rows below `results/<study>/<measure>/`, without the ending."""
        ablated = f"/{self.ablation}/{self.seed}" if self.measure == "retrieval" else ""
        return f"{self.dataset}/{self.model}/{self.side}{ablated}"

    def __str__(self) -> str:
        return f"{self.measure}/{self.path}"


@dataclass(frozen=True)
class Pruned:
    """A combination that is not run, and why."""

    combination: Combination
    setting: str  # what of the combination cannot be or is a repetition: side or ablation
    reason: str


@dataclass
class Grid:
    """Everything a study runs."""

    study: Study
    suites: dict[str, Suite]
    scored: list[Combination] = field(init=False)  # by every measure of embedding tables
    pruned: list[Pruned] = field(init=False)
    hidden_states: list[Model] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scored, self.pruned = prune(list(combinations(self.study, self.suites)), self.suites)
        if self.study.hidden_states:
            self.hidden_states = select(self.study.hidden_states.models, self.suites, "hidden_states.models")

    @cached_property
    def retrieval(self) -> list[Combination]:
        """What is scored on retrieval."""
        return [combination for combination in self.scored if combination.measure == "retrieval"]

    def originals(self, suite: str) -> list[Combination]:
        """Retrieval with the tables of a suite's finished models as they are, from the smallest model on."""
        facts = self.suites[suite]
        finished = [c for c in self.retrieval if (c.model.suite, c.model.checkpoint) == (suite, facts.final)]
        originals = [c for c in finished if c.ablation == "original"]
        return sorted(originals, key=lambda c: facts.sizes[c.model.size].parameters)

    @cached_property
    def published(self) -> list[str]:
        """The data sets on which scores of this study can be set beside published ones."""
        known = {c.dataset for c in self.retrieval if c.model.suite in PUBLISHED_SUITES}
        datasets = self.study.retrieval.datasets.items() if known else ()
        return [
            name for name, d in datasets if d.source == "mteb" and d.task == PUBLISHED_TASK and name in known
        ]

    @cached_property
    def scored_tokenizers(self) -> list[str]:
        """The tokenizers of what is scored on retrieval."""
        return list(dict.fromkeys(self.suites[c.model.suite].tokenizer for c in self.retrieval))

    @cached_property
    def tokenizers(self) -> dict[str, Model]:
        """Every tokenizer of the study, with the model it is read from, whose suite need not be in the study."""
        sources = {self.suites[m.suite].tokenizer: self.suites[m.suite].tokenizer_suite for m in self.models}
        return {
            tokenizer: Model(name, next(iter(self.suites[name].sizes)), self.suites[name].final)
            for tokenizer, name in sources.items()
        }

    @cached_property
    def tables(self) -> dict[str, dict[str, list[str]]]:
        """Table -> group -> the files its rows come from, below `results/<study>/`.

        Groups are suites (tokenizers, for tables that know no model): rows are gathered in two steps, because
        Snakemake's cost of a rule grows with its inputs times its jobs.
        """
        retrieval = self.study.retrieval
        found: dict[str, dict[str, list[str]]] = {}

        def add(table: str, group: str, path: str) -> None:
            found.setdefault(table, {}).setdefault(group, []).append(f"{table}/{path}.parquet")

        for combination in self.scored:
            add(combination.measure, combination.model.suite, combination.path)
        for dataset in retrieval.datasets if retrieval and retrieval.random_baseline else ():
            for tokenizer in self.scored_tokenizers:
                for seed in retrieval.random_baseline.seeds:
                    add("random_baseline", tokenizer, f"{dataset}/{tokenizer}/{seed}")
        for suite in dict.fromkeys(c.model.suite for c in self.retrieval):
            if len({c.model.size for c in self.originals(suite)}) > 1:
                add("comparisons", suite, suite)
        for dataset in self.published:
            add("published", dataset, dataset)
        for table, model in product(OF_HIDDEN_STATES, self.hidden_states):
            add(table, model.suite, str(model))
        for suite in dict.fromkeys(model.suite for model in self.hidden_states):
            add("anisotropy_bells", suite, suite)
            if over_training(model for model in self.hidden_states if model.suite == suite):
                add("dimension_over_training", suite, suite)
        for suite, size in dict.fromkeys((model.suite, model.size) for model in self.models):
            if self.suites[suite].pretraining:
                add("pretraining", suite, f"{suite}/{size}")
        return found

    def labels(self, table: str, suite: str) -> dict[str, Any] | None:
        """What a suite's file says of those of its models that a table is about; None where it is about no model."""
        scored = [combination.model for combination in self.scored if combination.measure == table]
        models = self.hidden_states if table in OF_HIDDEN_STATES else scored
        sizes = dict.fromkeys(model.size for model in models if model.suite == suite)
        if not sizes:
            return None
        facts = self.suites[suite]
        parameters = {size: facts.sizes[size].parameters for size in sizes}
        return {"architecture": facts.architecture, "final": facts.final, "parameters": parameters}

    def vocabulary_rows(self, tokenizer: str) -> int:
        """Rows of a tokenizer's random baseline: as the study says, or of the widest vocabulary among its models."""
        if tokenizer in (said := self.study.retrieval.random_baseline.rows):
            return said[tokenizer]
        suites = [suite for name in self.suite_names if (suite := self.suites[name]).tokenizer == tokenizer]
        return max(size.vocabulary_rows for suite in suites for size in suite.sizes.values())

    @cached_property
    def suite_names(self) -> list[str]:
        """The suites of the study."""
        return list(dict.fromkeys(model.suite for model in self.models))

    @cached_property
    def models(self) -> list[Model]:
        """Every model that some measure reads, once, in order of appearance."""
        return list(dict.fromkeys([c.model for c in self.scored] + self.hidden_states))


def build(study: Study, suites: dict[str, Suite]) -> Grid:
    """The grid of `study`; ConfigError names what cannot be."""
    if not (study.retrieval or study.word_similarity or study.hidden_states):
        raise ConfigError(
            f"study {study.study} measures nothing: add a section `retrieval`, `word_similarity` or `hidden_states`"
        )
    grid = Grid(study, suites)
    require_tokenizers(grid)
    require_positions(grid)
    used = [*grid.models, *grid.tokenizers.values()]
    require_local(used, suites)
    for name in grid.suite_names:
        suites[name].require_true()
    trained = [model.suite for model in used if suites[model.suite].source == "pretraining"]
    if (trained or grid.hidden_states) and not study.text:
        reader = f"suite {trained[0]} is trained by the workflow" if trained else "hidden_states reads one"
        raise ConfigError(
            f"text: {reader}: add a `text` section with a corpus; allowed sources: wikipedia-extract, enwik8, file"
        )
    if trained and study.text.held_out == 1:
        raise ConfigError(
            f"text.held_out: suite {trained[0]} is trained by the workflow, so part of `text` must be left "
            "to train on: set text.held_out below 1"
        )
    return grid


def require_tokenizers(grid: Grid) -> None:
    """ConfigError where the study says the random baseline's rows for a tokenizer that none of its models has."""
    retrieval = grid.study.retrieval
    known = sorted(grid.scored_tokenizers)
    for name in retrieval.random_baseline.rows if retrieval and retrieval.random_baseline else ():
        if name not in known:
            raise ConfigError(
                f"retrieval.random_baseline.rows.{name}: no scored model has this tokenizer{closest(name, known)}"
            )


def require_positions(grid: Grid) -> None:
    """ConfigError where a BERT that is trained here would be run on more tokens than it has positions for."""
    for model in grid.hidden_states:
        trained, length = grid.suites[model.suite].pretraining, grid.study.hidden_states.sequence_length
        if trained and trained.model_type == "bert" and length > trained.sequence_length:
            raise ConfigError(
                f"hidden_states.sequence_length {length}: suite {model.suite} is trained with positions for "
                f"{trained.sequence_length} tokens, its pretraining.sequence_length: lower the one or raise the other"
            )


def require_local(models: list[Model], suites: dict[str, Suite]) -> None:
    """ConfigError where a model of the user's own is not there, or is none.

    Snakemake would not say so once there are results: it takes one whose input is gone for finished.
    """
    for model, path in own_models(models, suites):
        if not path.exists():
            raise ConfigError(
                f"suite {model.suite}: there is no {path} (relative to {Path.cwd()}), which should be {model}"
            )
        try:
            local_models.files(path)
        except LmshapeError as error:
            raise ConfigError(f"suite {model.suite}, size {model.size}: {error}") from None


def own_models(models: Iterable[Model], suites: dict[str, Suite]) -> Iterator[tuple[Model, Path]]:
    """The models of the user's own among `models`, each with where it lies."""
    for model in models:
        if suites[model.suite].source == "local":
            yield model, Path(suites[model.suite].path_of(model.size, model.step))


def over_training(models: Iterable[Model]) -> bool:
    """Whether some size of a suite is among `models` at several training steps."""
    sizes = Counter((model.suite, model.size) for model in set(models) if model.step is not None)
    return max(sizes.values(), default=0) > 1


def select(models: Models, suites: dict[str, Suite], key: str) -> list[Model]:
    """The models a selection names, in its order."""
    return [
        Model(name, size, checkpoint)
        for name, selection in models.items()
        for size in chosen_sizes(lookup(suites, name, key), selection.sizes, f"{key}.{name}.sizes")
        for checkpoint in chosen_checkpoints(
            suites[name], size, selection.checkpoints, f"{key}.{name}.checkpoints"
        )
    ]


def lookup(suites: dict[str, Suite], name: str, key: str) -> Suite:
    if name not in suites:
        raise ConfigError(f"{key}.{name}: there is no such suite in suites/{closest(name, sorted(suites))}")
    return suites[name]


def chosen_sizes(suite: Suite, wanted: list[str] | str, key: str) -> list[str]:
    """The sizes `wanted` names, each of which the suite must have."""
    sizes = list(suite.sizes) if wanted == "all" else list(wanted)
    for size in sizes:
        if size not in suite.sizes:
            raise ConfigError(
                f"{key}: suite {suite.name} has no size {size}{closest(size, list(suite.sizes))}"
            )
    return sizes


def chosen_checkpoints(suite: Suite, size: str, wanted: list[int] | str, key: str) -> list[str]:
    """The checkpoints of a size that `wanted` names, the final model always among them."""
    if wanted == "final":
        return [suite.final]
    checkpoints = suite.checkpoints_of(size)
    if not checkpoints:
        raise ConfigError(f"{key}: suite {suite.name} has no checkpoints of {size}; allowed: final")
    steps = checkpoints.steps
    unknown = [] if wanted == "all" else sorted(set(wanted) - set(steps))
    if unknown:
        allowed = ", ".join(map(str, steps))
        raise ConfigError(
            f"{key}: suite {suite.name} has no step {unknown[0]} of {size}; allowed: all, final, {allowed}"
        )
    return list(dict.fromkeys([f"step{s}" for s in steps if wanted == "all" or s in wanted] + [suite.final]))


def combinations(study: Study, suites: dict[str, Suite]) -> Iterator[Combination]:
    """Every combination the study asks for, possible or not."""
    if settings := study.retrieval:
        models = select(settings.models, suites, "retrieval.models")
        for dataset, model in product(settings.datasets, models):
            final = model.checkpoint == suites[model.suite].final
            for ablation in settings.ablations if final else settings.checkpoint_ablations:
                seeds = settings.seeds if Ablation.parse(ablation).random else [NO_SEED]
                for side, seed in product(settings.sides, seeds):
                    yield Combination("retrieval", dataset, model, side, ablation, str(seed))
        for task, model, side in product(settings.tasks, models, settings.sides):
            yield Combination("mteb_tasks", task, model, side)
    if settings := study.word_similarity:
        models = select(settings.models, suites, "word_similarity.models")
        for dataset, model, side in product(settings.datasets, models, settings.sides):
            yield Combination("word_similarity", dataset, model, side)


def prune(wanted: list[Combination], suites: dict[str, Suite]) -> tuple[list[Combination], list[Pruned]]:
    """Split combinations into those to run and those that cannot be, or would repeat another.

    ConfigError if an ablation or a side is possible for no table at all: a mistake, not a corner of the grid.
    """
    cuts = {c: cut for c in wanted if (cut := impossible(c, suites))}
    refuse_hopeless(wanted, cuts, suites)
    kept: list[Combination] = []
    pruned: list[Pruned] = []
    same: dict[tuple, Combination] = {}
    for combination in wanted:
        if combination in cuts:
            pruned.append(cuts[combination])
        elif (twin := same.setdefault(identity(combination, suites), combination)) is not combination:
            pruned.append(Pruned(combination, "ablation", f"the same numbers as {twin}"))
        else:
            kept.append(combination)
    return kept, pruned


def impossible(combination: Combination, suites: dict[str, Suite]) -> Pruned | None:
    """Why a combination cannot be, or None."""
    suite = suites[combination.model.suite]
    if combination.side == "output" and not suite.untied_at(combination.model.size):
        return Pruned(combination, "side", "tied: the output embedding is the input embedding")
    _, width = shape(combination, suites)
    reason = Ablation.parse(combination.ablation).impossible(width)
    return Pruned(combination, "ablation", reason) if reason else None


def identity(combination: Combination, suites: dict[str, Suite]) -> tuple:
    """Two combinations of one identity score the same numbers.

    A random table knows nothing of the weights: one for each tokenizer and shape is enough, whichever side has it.
    """
    if combination.ablation != "random":
        return (combination,)
    tokenizer = suites[combination.model.suite].tokenizer
    return (combination.measure, combination.dataset, tokenizer, shape(combination, suites), combination.seed)


def shape(combination: Combination, suites: dict[str, Suite]) -> tuple[int, int]:
    """(rows, width) of a combination's table as it is stored."""
    return suites[combination.model.suite].sizes[combination.model.size].shape(combination.side)


def refuse_hopeless(
    wanted: list[Combination], cuts: dict[Combination, Pruned], suites: dict[str, Suite]
) -> None:
    """ConfigError for a side or an ablation that the study lists and none of its tables can have."""
    settings = ("side", "ablation")
    possible = {listed(c, setting, suites) for c in wanted if c not in cuts for setting in settings}
    for cut in cuts.values():
        key, value = listed(cut.combination, cut.setting, suites)
        if (key, value) in possible:
            continue
        tables = [c for c in wanted if listed(c, cut.setting, suites) == (key, value)]
        widths = sorted({shape(c, suites)[1] for c in tables})
        allowed = ": input" if cut.setting == "side" else f" widths here: {', '.join(map(str, widths))}"
        raise ConfigError(
            f"{key}: {value} is possible for no table of this study: {cut.reason}; allowed{allowed}"
        )


def listed(combination: Combination, setting: str, suites: dict[str, Suite]) -> tuple[str, str]:
    """The key of the study that lists a combination's side or ablation, and the value."""
    final = combination.model.checkpoint == suites[combination.model.suite].final
    key = "sides" if setting == "side" else "ablations" if final else "checkpoint_ablations"
    section = "retrieval" if combination.measure == "mteb_tasks" else combination.measure
    return f"{section}.{key}", getattr(combination, setting)
