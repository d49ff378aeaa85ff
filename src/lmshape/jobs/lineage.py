"""What a result was made of, all the way up, as one short string that is a param of its job.

Snakemake compares a job's params with those that its result was made with, so that a result is stale when anything
that it was made of is another now: code, settings, files of the user's, and the same of every job before it. Files in
between are never looked at: they may be deleted, or lost to a job that failed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lmshape.jobs.outline import digest


def made_of(code: str, settings: Mapping[str, Any], inputs: Iterable[str]) -> str:
    """16 hexadecimal digits for a job of this code and these settings on these inputs, in their order.

    `settings` are told apart by name; `inputs` say what each was made of, or what it holds.
    """
    lines = [f"code {code}"]
    lines += [f"setting {name} {value!r}" for name, value in sorted(settings.items())]
    lines += [f"input {each}" for each in inputs]
    return digest("\n".join(lines).encode())
