"""What a shell, a notebook or a settings file puts into the environment, and no job may see.

The workflow settles it. Every job is the child of a process that has read it, on a cluster too, so what
Python looks at before any script begins is settled as well. The user's choices of places (HF_HOME, TMPDIR), of the
network (HF_ENDPOINT, HF_TOKEN, proxies) and of devices (CUDA_VISIBLE_DEVICES) are kept.
"""

import re
import shlex
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from lmshape.errors import ConfigError

PACKAGE = Path(__file__).resolve().parents[1]

SETTINGS = {
    "MPLBACKEND": "agg",  # a notebook names its own, which is not installed here
    "PYTHONUTF8": "1",  # whatever the locale says of files
}

# Variables by how they begin: Python's own (warnings as errors, no assertions, waiting for a keyboard at the end),
# how polars prints and in which order it may work, what SciPy's functions accept, how accelerate runs models,
# what mteb installs, and where pip puts the packages of a conda environment.
PREFIXES = ("PYTHON", "POLARS_", "SCIPY_", "ACCELERATE_", "FSDP_", "MTEB_", "PIP_")

# These round products to fewer bits than their inputs have, on GPUs and on CPUs, or have torch and oneDNN work as on
# an older processor: torch then draws another random table of the same seed. (OPENBLAS_CORETYPE is kept: no score
# depends on it, and some processors need it.)
ARITHMETIC = (
    "ATEN_CPU_CAPABILITY",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_MAX_CPU_ISA",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_DEFAULT_FPMATH_MODE",
)

# Of these prefixes, what is the user's choice of places, of the network, or changes no result.
KEPT = {
    "PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONFAULTHANDLER", "POLARS_TEMP_DIR",
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_PROXY",
    "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CACHE_DIR", "PIP_CONFIG_FILE", "PIP_TIMEOUT", "PIP_RETRIES",
}  # fmt: skip


def settle(environment: MutableMapping[str, str]) -> None:
    """Take out of the environment of all jobs what may change their results or stop them, and set what must be."""
    for name in list(environment):
        if name in ARITHMETIC or (name.startswith(PREFIXES) and name not in KEPT):
            del environment[name]
    environment.update(SETTINGS)


def require_numbers(environment: Mapping[str, str]) -> None:
    """ConfigError for a variable of the hub's client that is no number, at which it could not be imported."""
    for name in ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"):
        given = environment.get(name)
        if given is not None and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", given):
            raise ConfigError(
                f"the environment variable {name} is {given!r}: set it to whole seconds, or unset it"
            )


def quoted(executable: str) -> str:
    """The path of a Python as Snakemake needs it, which puts it into the commands of jobs without quotes."""
    return executable if executable.startswith("'") else shlex.quote(executable)


def require_checkout(checkout: Path) -> None:
    """ConfigError where a checkout's rules would run with the code of another one, or with an installed copy.

    And where Snakemake could not run its scripts.
    """
    own = checkout.resolve() / "src" / "lmshape"
    if own.is_dir() and own != PACKAGE:
        raise ConfigError(
            f"lmshape is imported from {PACKAGE}, not from {own}, whose workflow this is: take it out of PYTHONPATH, "
            "or install this checkout (`make install`, or `pip install --no-deps --editable .`)"
        )
    if set("{}") & set(str(checkout)):
        raise ConfigError(
            f"{checkout}: Snakemake runs no script of a folder with braces in its name; move it"
        )
