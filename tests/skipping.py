"""Tests that need what not every machine allows: a cluster of their own, a disk that fills up."""

import os
from typing import NoReturn

import pytest


def skip(reason: str) -> NoReturn:
    """Skip the test, which cannot run here; where nothing may go untested, as in `.ci/run`, it fails."""
    if os.environ.get("LMSHAPE_NO_SKIP"):
        pytest.fail(reason)
    pytest.skip(reason)
