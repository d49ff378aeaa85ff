"""What jobs ask for follows from the models they run."""

import re

import pytest
import yaml

GIGABYTE = 1000  # in the unit of mem_mb


@pytest.mark.parametrize(("dtype", "bytes_each"), [("float32", 4), ("bfloat16", 2)])
def test_a_job_that_runs_a_model_has_room_for_its_weights_once_in_the_precision_of_the_study(
    dtype, bytes_each, tmp_path, snakemake
):
    """13 billion parameters, and a small model, which needs room for the packages alone."""
    section = {"models": {"opt": {"sizes": ["125m", "13b"]}}, "dtype": dtype}
    study = {"study": "s", "title": "S", "text": {"corpus": {"source": "wikipedia-extract"}}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study | {"hidden_states": section}))
    said = snakemake("anisotropy", "--dry-run", "--configfile", str(tmp_path / "study.yaml")).stdout
    jobs = re.findall(r"(?m)^rule hidden_states:\n((?:    .*\n)+)", said)
    memory = {
        re.search(r"size=(\w+)", job)[1]: int(re.search(r"mem_mb=(\d+)", job)[1]) / GIGABYTE for job in jobs
    }
    weights = 12.85 * bytes_each
    assert weights + 2 < memory["13b"] < 1.3 * weights + 3
    assert 2 < memory["125m"] < 4
