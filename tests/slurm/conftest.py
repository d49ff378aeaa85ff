"""A real SLURM for the tests of this folder."""

from collections.abc import Iterator

import lab
import pytest


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which `sbatch`, `squeue` and Snakemake's SLURM executor reach the lab."""
    if reason := lab.install():
        pytest.skip(reason)
    with lab.running(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment
