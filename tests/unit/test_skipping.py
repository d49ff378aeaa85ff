"""What a machine cannot test is skipped with its reason, and is a failure of the whole check."""

import subprocess
from pathlib import Path

import pytest
from skipping import skip

CHECK = Path(__file__).parents[2] / ".ci/run"


def test_what_cannot_run_here_is_skipped_with_its_reason(monkeypatch):
    monkeypatch.delenv("LMSHAPE_NO_SKIP", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs root"):
        skip("needs root")


def test_what_cannot_run_here_fails_the_whole_check(monkeypatch, tmp_path):
    """The environment is that in which `.ci/run` calls make."""
    make = tmp_path / "make"
    make.write_text("#!/bin/sh\nprintenv LMSHAPE_NO_SKIP")
    make.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    called = subprocess.run([CHECK], env={"PATH": path}, capture_output=True, text=True, check=True)
    monkeypatch.setenv("LMSHAPE_NO_SKIP", called.stdout.strip())
    with pytest.raises(pytest.fail.Exception, match="needs root"):
        skip("needs root")
