"""A copy of the repository with finished studies in it, whose results are empty files.

What is stale after a change is read off dry runs. Nothing is computed: to finish a study its outputs are made here,
and Snakemake is told to take them for what its jobs would have made (`--touch`). Scripts begin with a stub that makes
empty files, and keep their text behind it, so that their code is followed as ever.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
STUB = """
import os
import pathlib
written = os.environ.get("WRITTEN", "")
for path in map(pathlib.Path, snakemake.output):
    path.write_text(written) if path.suffix in ENDINGS else path.mkdir()
raise SystemExit(0)
"""
USERS_FILES = {
    "docs/corpus.jsonl": "documents",
    "docs/queries.jsonl": "queries",
    "docs/qrels/test.tsv": "judgements",
    "pairs.tsv": "pairs of words",
    "ours/model/config.json": '{"model_type": "gpt_neox"}',
    "ours/model/model.safetensors": "weights",
    "ours/model/step-5/config.json": '{"model_type": "gpt_neox"}',
    "ours/model/step-5/model.safetensors": "weights of a checkpoint",
}
ENDINGS = (
    ".parquet",
    ".csv",
    ".npz",
    ".bfloat16",
    ".jsonl",
    ".json",
    ".yaml",
    ".html",
    ".svg",
    ".png",
    ".safetensors",
    ".zip",
)
SHAPE = {"width": 8, "vocabulary_rows": 50, "layers": 1}
SUITES = {
    "toy": {
        "name": "toy",
        "title": "On a hub",
        "architecture": "decoder",
        "tokenizer": "toy-words",
        "checkpoints": {"steps": [1, 2, 3]},
        "sizes": {
            "s": {"hub": "toys/s", "parameters": 1000, **SHAPE},
            "m": {"hub": "toys/m", "parameters": 2000, **SHAPE, "width": 16},
        },
    },
    "able": {  # in no study yet; before `toy` by name
        "name": "able",
        "title": "On a hub, with the tokenizer of toy",
        "architecture": "decoder",
        "tokenizer": "toy-words",
        "tokenizer_from": "toy",
        "sizes": {"s": {"hub": "ables/s", "parameters": 1500, **SHAPE, "width": 12}},
    },
    "grown": {
        "name": "grown",
        "title": "Trained here",
        "architecture": "encoder",
        "tokenizer": "grown-words",
        "pretraining": {"model_type": "bert"},
        "checkpoints": {"steps": [0, 4]},
        "sizes": {"s": {"parameters": 2466, **SHAPE, "heads": 1}},
    },
    "pythia": {  # of which a published study printed numbers
        "name": "pythia",
        "title": "On a hub, in two sizes",
        "architecture": "decoder",
        "tokenizer": "pythia-words",
        "sizes": {
            "s": {"hub": "pythias/s", "parameters": 1000, **SHAPE},
            "m": {"hub": "pythias/m", "parameters": 2000, **SHAPE},
        },
    },
    "borrowed": {
        "name": "borrowed",
        "title": "On a hub, with the tokenizer of pythia",
        "architecture": "decoder",
        "tokenizer": "pythia-words",
        "tokenizer_from": "pythia",
        "sizes": {"s": {"hub": "borroweds/s", "parameters": 1000, **SHAPE}},
    },
    "shipped": {
        "name": "shipped",
        "title": "In a Python package",
        "architecture": "encoder",
        "tokenizer": "shipped-words",
        "package": "no_such_package",
        "sizes": {"s": {"path": "model", "parameters": 1000, **SHAPE}},
    },
    "ours": {
        "name": "ours",
        "title": "On this machine",
        "architecture": "decoder",
        "tokenizer": "our-words",
        "checkpoints": {"steps": [5], "revision": "step-{step}"},
        "sizes": {"s": {"path": "ours/model", "parameters": 1000, **SHAPE}},
    },
}
SMALL = {
    "study": "small",
    "title": "A small study",
    "text": {"corpus": {"source": "wikipedia-extract"}, "held_out": 0.5},
    "retrieval": {
        "models": {"toy": {"sizes": ["s"], "checkpoints": [1, 2]}, "grown": {}},
        "datasets": {"docs": {"source": "folder", "path": "docs"}},
        "ablations": ["original", "random", "crop-4"],
        "seeds": [0],
        "random_baseline": {"widths": [8], "seeds": [0]},
    },
    "word_similarity": {"models": {"grown": {}}, "datasets": {"pairs": "pairs.tsv"}},
    "hidden_states": {
        "sequence_length": 128,
        "models": {"toy": {"sizes": ["s"]}, "grown": {"checkpoints": "all"}},
    },
}
EVERY_RULE = {
    "study": "every",
    "title": "A study with jobs of every rule",
    "text": {"corpus": {"source": "enwik8"}, "held_out": 0.5},
    "retrieval": {
        "models": {"pythia": {}, "borrowed": {}, "shipped": {}, "ours": {"checkpoints": "all"}},
        "datasets": {"scidocs": {"source": "mteb", "task": "SCIDOCS"}},
        "random_baseline": {"widths": [8], "seeds": [0]},
        "tasks": ["STS12"],
    },
    "word_similarity": {"models": {"ours": {}}, "datasets": {"pairs": "pairs.tsv"}},
    "hidden_states": {
        "sequence_length": 128,
        "models": {"pythia": {"sizes": ["s"]}, "grown": {"checkpoints": "all"}},
    },
}


class Copy:
    """A copy of the repository; `results` is the folder of the study that is looked at."""

    def __init__(self, folder: Path, snakemake: Callable[..., tuple[int, str]], study: str = "small"):
        self.folder = folder
        self.results = folder / "results" / study
        self._study = study
        self._snakemake = snakemake

    def of(self, study: str) -> "Copy":
        """The same with another study."""
        return Copy(self.folder, self._snakemake, study)

    def at(self, folder: Path) -> "Copy":
        """The same study elsewhere."""
        return Copy(folder, self._snakemake, self._study)

    def snakemake(self, *arguments: str, fails: bool = False, **environment: str) -> str:
        """Run Snakemake on the study, the targets first; returns what it said.

        Without what is told when a run ends: there is nothing in the tables.
        """
        environment = {"PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        study = () if self._study == "small" else ("--configfile", f"{self._study}.yaml")
        status, said = self._snakemake(*arguments, *study, "--no-hooks", folder=self.folder, **environment)
        assert (status != 0) == fails, said
        return said

    def jobs(self, *arguments: str, **environment: str) -> list["PlannedJob"]:
        """The jobs that a run would do."""
        said = self.snakemake(*arguments, "--dry-run", **environment)
        blocks = re.findall(r"(?m)^(?:local)?rule (\w+):\n((?:    .*\n)+)", said)
        return [PlannedJob(rule, block, f"results/{self._study}/") for rule, block in blocks]

    def stale(self, reason: str = "", target: str = "all", **environment: str) -> set[str]:
        """The first output of every job that a run would do (for a `reason`), below the study's results."""
        jobs = self.jobs(target, **environment)
        return {job.outputs[0] for job in jobs if job.outputs and reason in job.reason}

    def finish(self) -> None:
        """Make every output of the study, and let Snakemake take it for finished."""
        for job in self.jobs("all"):
            for output in job.outputs:
                make(self.results / output)
        self.snakemake("all", "--touch", "--forceall", "--quiet", "all")
        assert self.stale() == set()

    @contextlib.contextmanager
    def changed(self, name: str, *replacements: tuple[str, str]) -> Iterator[None]:
        """Replace text in a file for a while; every replacement must find something to replace."""
        path = self.folder / name
        before = after = path.read_text()
        for old, new in replacements:
            assert old in after, f"{name} does not contain {old!r}"
            after = after.replace(old, new, 1)
        path.write_text(after)
        try:
            yield
        finally:
            path.write_text(before)

    @contextlib.contextmanager
    def configured(self, name: str, *keys_and_value: object) -> Iterator[None]:
        """Set one key of a YAML file for a while."""
        *keys, last, value = keys_and_value
        content = yaml.safe_load((self.folder / name).read_text())
        section = content
        for key in keys:
            section = section[key]
        section[last] = value
        text = (self.folder / name).read_text()
        with self.changed(name, (text, yaml.safe_dump(content, sort_keys=False))):
            yield


class PlannedJob:
    """A job as a dry run tells of it; paths are below the study's results, others are left out."""

    def __init__(self, rule: str, block: str, results: str):
        def paths(key: str) -> list[str]:
            listed = re.findall(rf"(?m)^    {key}: (.*)$", block)
            names = re.sub(r" \([^)]*\)", "", listed[0]).split(", ") if listed else []
            return [name.removeprefix(results) for name in names if name.startswith(results)]

        self.rule = rule
        self.inputs, self.outputs = paths("input"), paths("output")
        self.temporary = "(temporary)" in block  # only jobs with one output have such
        self.reason = "".join(re.findall(r"(?m)^    reason: (.*)$", block))


def make(path: Path) -> None:
    """Make an empty file, or an empty folder, as the name tells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch() if path.suffix in ENDINGS else path.mkdir(exist_ok=True)


def write(folder: Path) -> None:
    """Put the workflow, its code, stubs of its scripts, suites and studies into `folder`."""
    shutil.copy(ROOT / "Snakefile", folder)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("workflow", "scripts", "src", "profiles", "envs"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for script in (folder / "scripts").glob("*.py"):
        script.write_text(f"ENDINGS = {ENDINGS}{STUB}\n{script.read_text()}")
    (folder / "suites").mkdir()
    for name, suite in SUITES.items():
        (folder / f"suites/{name}.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
    for name, study in (("config", SMALL), ("every", EVERY_RULE)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    for name, text in USERS_FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def with_dates(folder: Path, seconds: float) -> None:
    """Give every file and folder below `folder` one date."""
    for path in folder.rglob("*"):
        os.utime(path, (seconds, seconds), follow_symlinks=False)
