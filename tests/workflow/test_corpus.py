"""Where a study's text comes from is an input of its own, so that nothing else needs a network."""

import re

import pytest
import yaml

STUDY = {"study": "reading", "title": "A study", "hidden_states": {"models": {"minilm": {}}}}


@pytest.mark.parametrize(
    ("corpus", "read"),
    [
        ({"source": "wikipedia-extract"}, None),
        ({"source": "enwik8"}, "results/reading/downloads/enwik8.zip"),
        ({"source": "file", "path": "own.txt"}, "own.txt"),
    ],
    ids=lambda value: value["source"] if isinstance(value, dict) else "",
)
def test_the_file_that_holds_the_text_is_an_input_and_a_download_a_job_that_says_so(
    corpus, read, tmp_path, snakemake
):
    if "path" in corpus:
        corpus = {**corpus, "path": str(tmp_path / read)}
        (tmp_path / read).touch()
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY | {"text": {"corpus": corpus}}))
    said = snakemake("text", "--dry-run", "--configfile", str(tmp_path / "study.yaml")).stdout
    jobs = {name: body for name, body in re.findall(r"(?m)^rule (\w+):\n((?:    .*\n)+)", said)}
    assert jobs.keys() == ({"text", "fetch_text"} if corpus["source"] == "enwik8" else {"text"})
    assert (f"input: {corpus.get('path', read)}\n" in jobs["text"]) == (read is not None)
    assert "downloads=" not in jobs["text"]
    assert "downloads=1" in jobs.get("fetch_text", "downloads=1")
