"""With --keep-going, a run that fails in places ends with tables and report of the rest, which name what is missing.

The workflow is the real one, with tables.py and its like; the scripts of all that is measured are stand-ins that take
no time, and fail where a file says so.
"""

import json
import re
from pathlib import Path

import polars as pl
import pytest
import small_study
import yaml

STAND_IN = '''
"""Writes what a table can be made of, unless `broken.json` says that this job fails."""

from lmshape.jobs import job

job.start(snakemake)

import json
from pathlib import Path

from lmshape.errors import LmshapeError

name = "/".join([snakemake.rule, *snakemake.wildcards])
for broken, said in json.loads(Path("broken.json").read_text()).items():
    if name.startswith(broken):
        raise LmshapeError(f"{said}: {name}")
names = dict(snakemake.wildcards.items())
if "seed" in names:
    names["seed"] = int(names["seed"]) if names["seed"].isdigit() else None
row = {**names, "metric": "ndcg_at_10", "value": 1.0, "mean": 1.0, "layer": 0, "reason": None}
for output in map(Path, snakemake.output):
    if output.suffix == ".parquet":
        import polars as pl

        pl.DataFrame([row]).write_parquet(output)
    elif output.suffix == ".html":
        output.write_text(json.dumps({**snakemake.params, "inputs": list(snakemake.input)}))
    elif output.suffix:
        output.touch()
    else:
        output.mkdir()
'''
REAL = ("table.py", "study.py")
SUITE = {
    "architecture": "decoder",
    "untied": True,
    "sizes": {"s": {"parameters": 16192, "width": 16, "vocabulary_rows": 300, "layers": 2}},
}
STUDY = {key: value for key, value in small_study.STUDY.items() if key not in ("text", "hidden_states")}


class Study:
    """A folder with the study, and what of it is broken."""

    def __init__(self, folder: Path, snakemake):
        self.folder, self._snakemake = folder, snakemake
        small_study.write(folder)
        (folder / "suites/grown.yaml").unlink()
        for name in ("good", "bad"):
            (folder / f"runs/{name}").mkdir(parents=True)
            for file in ("config.json", "model.safetensors", "tokenizer.json"):
                (folder / f"runs/{name}/{file}").write_text("{}")
            suite = SUITE | {"name": name, "title": name, "tokenizer": name}
            suite["sizes"] = {"s": SUITE["sizes"]["s"] | {"path": f"runs/{name}"}}
            (folder / f"suites/{name}.yaml").write_text(yaml.safe_dump(suite))
        retrieval = STUDY["retrieval"] | {"models": {"good": {}, "bad": {}}}
        (folder / "study.yaml").write_text(yaml.safe_dump(STUDY | {"retrieval": retrieval}))
        for script in (folder / "scripts").glob("*.py"):
            if script.name not in REAL:
                script.write_text(STAND_IN)

    def run(self, *arguments: str, broken: dict[str, str] = {}) -> tuple[int, str]:  # noqa: B006
        """One run, in which the jobs fail whose rule and wildcards begin as `broken` says; its status and words."""
        (self.folder / "broken.json").write_text(json.dumps(broken))
        chosen = ("--configfile", "study.yaml", "--config", "title=It's of no use")
        ended = self._snakemake(*arguments, *chosen, "--retries", "1", folder=self.folder)
        return ended.returncode, ended.stdout

    def planned(self, target: str) -> set[str]:
        """The rules and wildcards of the jobs that a run would do."""
        said = self.run(target, "--dry-run")[1]
        jobs = re.findall(r"(?m)^(?:local)?rule (\w+):\n((?:    .*\n)*)", said)
        return {(rule, *re.findall(r"(?m)^    wildcards: (.*)$", facts)) for rule, facts in jobs}

    def table(self, name: str) -> pl.DataFrame:
        return pl.read_parquet(self.folder / f"results/small/tables/{name}.parquet")

    def report(self) -> dict:
        """What the report was made of."""
        return json.loads((self.folder / "results/small/report.html").read_text())


@pytest.fixture(scope="module")
def study(tmp_path_factory, snakemake) -> Study:
    return Study(tmp_path_factory.mktemp("a study"), snakemake)


def missing(table: pl.DataFrame) -> set[tuple]:
    return set(table.filter(pl.col("value").is_null()).select("suite", "ablation", "seed").iter_rows())


WANTED = {("original", None), ("random", 0), ("crop-8", None)}
CUT_SHORT = {"embedding_table/bad": "cut short"}


def test_one_bad_model_costs_its_own_values_alone(study):
    status, said = study.run("report", "--keep-going", broken=CUT_SHORT)
    assert status == 1 and "Trying to restart" not in said and "NOTHING WAS MEASURED" not in said
    assert "3 of 6 results could not be made" in said
    assert "3: embedding_table failed: LmshapeError: cut short: embedding_table/bad/s/main/input" in said
    rows = study.table("retrieval")
    assert missing(rows) == {("bad", *names) for names in WANTED}
    assert set(rows.filter(suite="good", value=1.0).select("ablation", "seed").iter_rows()) == WANTED
    assert rows.filter(suite="bad")["reason"].str.contains("cut short").all()
    assert study.report()["title"] == "It's of no use" and study.report()["lost"] == []


def test_the_next_run_makes_what_was_missing_and_what_follows_from_it(study):
    planned = study.planned("report")
    measured = {job for job in planned if job[0] in ("dataset", "counts", "embedding_table", "retrieve")}
    assert {rule for rule, *_ in measured} == {"embedding_table", "retrieve"}
    assert len(measured) == 4 and all("suite=bad" in wildcards for _, wildcards in measured)
    assert ("suite_table", "table=retrieval, suite=bad") in planned
    assert ("suite_table", "table=retrieval, suite=good") not in planned
    assert study.run("report", "--keep-going")[0] == 0
    assert missing(study.table("retrieval")) == set()
    assert study.planned("report") == set()


def test_older_results_are_no_values_and_a_figure_that_fails_costs_only_itself(study):
    with (study.folder / "topics/corpus.jsonl").open("a") as corpus:
        corpus.write('{"_id": "new", "title": "", "text": "one more"}\n')
    broken = {"counts/topics/good": "no tokens", "figure/retrieval_by_width": "no ink"}
    status, said = study.run("report", "--keep-going", broken=broken)
    assert status == 1
    assert re.search(r"3 of 6 results could not be made, nor 2 of \d+ files gathered from them", said)
    assert (study.folder / "results/small/retrieval/topics/good/s/main/input/original/none.parquet").exists()
    assert missing(study.table("retrieval")) == {("good", *names) for names in WANTED}
    [figure] = study.report()["lost"]
    assert figure["path"] == "results/small/figures/retrieval_by_width.svg" and "no ink" in figure["reason"]
    assert figure["path"] not in study.report()["inputs"]
    assert "results/small/figures/retrieval_all_suites.svg" in study.report()["inputs"]


def test_where_nothing_could_be_made_the_end_says_so_with_the_keys_of_the_study(study):
    status, said = study.run(
        "retrieval", "--keep-going", "--forcerun", "dataset", broken={"dataset": "no room"}
    )
    assert status == 1
    assert "NOTHING WAS MEASURED for table retrieval: all 6 values are missing: dataset failed" in said
    assert "retrieval.datasets" in said
    assert missing(study.table("retrieval")) == {
        (suite, *names) for suite in ("good", "bad") for names in WANTED
    }


def test_without_keep_going_nothing_is_gathered(study):
    before = study.table("retrieval")
    status, said = study.run("retrieval", "--forcerun", "embedding_table", broken=CUT_SHORT)
    assert status == 1 and "could not be made" not in said
    assert study.table("retrieval").equals(before)
