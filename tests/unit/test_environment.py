"""What users' shells, notebooks and settings hold is not in the environment of jobs, but for what they chose."""

import subprocess
import sys
from pathlib import Path

import pytest

from lmshape.errors import ConfigError
from lmshape.jobs import environment

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name",
    [
        "PYTHONWARNINGS",
        "PYTHONINSPECT",
        "PYTHONOPTIMIZE",
        "PYTHONSTARTUP",
        "PYTHONIOENCODING",
        "POLARS_ENGINE_AFFINITY",
        "POLARS_FMT_MAX_ROWS",
        "POLARS_MAX_THREADS",
        "SCIPY_ARRAY_API",
        "ACCELERATE_MIXED_PRECISION",
        "FSDP_CPU_RAM_EFFICIENT_LOADING",
        "MTEB_AUTO_INSTALL_EXTRAS",
        "NVIDIA_TF32_OVERRIDE",
        "ONEDNN_DEFAULT_FPMATH_MODE",
        "ATEN_CPU_CAPABILITY",
        "DNNL_MAX_CPU_ISA",
        "PIP_TARGET",
        "PIP_USER",
        "PIP_REQUIRE_VIRTUALENV",
        "PIP_NO_BINARY",
    ],
)
def test_what_may_change_results_or_stop_jobs_is_gone(name):
    found = {name: "1", "PATH": "/bin"}
    environment.settle(found)
    assert found == {"PATH": "/bin"} | environment.SETTINGS


@pytest.mark.parametrize(
    "name",
    [
        "HOME", "TMPDIR", "HF_HOME", "HF_ENDPOINT", "HF_TOKEN", "http_proxy", "CUDA_VISIBLE_DEVICES",
        "OPENBLAS_CORETYPE", "PYTHONPATH", "PYTHONHASHSEED", "PIP_INDEX_URL", "SLURM_JOB_ID", "LD_LIBRARY_PATH",
        "MPLCONFIGDIR",
    ],
)  # fmt: skip
def test_what_a_user_chose_is_kept(name):
    found = {name: "chosen"}
    environment.settle(found)
    assert found[name] == "chosen"


def test_what_is_set_replaces_what_was():
    found = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "PYTHONUTF8": "0"}
    environment.settle(found)
    assert found == {"MPLBACKEND": "agg", "PYTHONUTF8": "1"}


@pytest.mark.parametrize("given", ["ten", "", "1.5"])
def test_a_time_that_the_hubs_client_cannot_read_is_refused_by_name(given):
    with pytest.raises(ConfigError, match=f"HF_HUB_DOWNLOAD_TIMEOUT is {given!r}: set it to whole seconds"):
        environment.require_numbers({"HF_HUB_DOWNLOAD_TIMEOUT": given})
    environment.require_numbers({"HF_HUB_DOWNLOAD_TIMEOUT": "30"})


def test_python_starts_and_draws_in_what_is_left(tmp_path):
    """Each of these alone ends a job, or changes what it reads and writes."""
    found = {
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONWARNINGS": "error",
        "PYTHONINSPECT": "1",
        "PYTHONOPTIMIZE": "2",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "MPLCONFIGDIR": str(tmp_path),
    }
    environment.settle(found)
    job = """
import sys, warnings
import matplotlib
warnings.warn("old", DeprecationWarning)
open("ü", "w").write("ü")
print(matplotlib.get_backend(), sys.flags.optimize, sys.flags.inspect, open("ü", "rb").read())
"""
    ended = subprocess.run(
        [sys.executable, "-c", job], cwd=tmp_path, env=found, stdin=subprocess.DEVNULL, capture_output=True
    )
    assert ended.stdout.decode().split(maxsplit=3) == ["agg", "0", "0", "b'\\xc3\\xbc'\n"], ended.stderr


def test_rules_run_with_the_code_of_their_own_checkout(tmp_path):
    environment.require_checkout(ROOT)
    environment.require_checkout(tmp_path)  # a workflow without the code, which is installed
    (tmp_path / "src/lmshape").mkdir(parents=True)
    with pytest.raises(ConfigError, match=f"not from {tmp_path}/src/lmshape, .*PYTHONPATH"):
        environment.require_checkout(tmp_path)


def test_a_checkout_whose_scripts_snakemake_cannot_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="braces in its name"):
        environment.require_checkout(tmp_path / "{project}")


@pytest.mark.parametrize("folder", ["plain", "with space", "o'clock", "a $b;c"])
def test_a_python_of_any_path_starts_from_a_command(tmp_path, folder):
    program = tmp_path / folder / "python"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    once = environment.quoted(str(program))
    assert environment.quoted(once) == once
    assert subprocess.run(f"{once} -c 'print(1)'", shell=True, capture_output=True, text=True).stdout == "1\n"
