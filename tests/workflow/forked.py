"""Snakemake as a user runs it, without the second that it takes to be imported.

Each run is a process of its own, forked from one that has imported Snakemake and done nothing else.
"""

import json
import os
import subprocess
import sys
from pathlib import Path


class Forked:
    """Runs Snakemake in processes that are forked from one of its own."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *arguments: str, folder: Path, **environment: str) -> tuple[int, str]:
        """The exit status of a run in `folder`, and what it said."""
        said = folder / "snakemake.log"
        run = {"arguments": arguments, "folder": str(folder), "environment": environment, "said": str(said)}
        self._server.stdin.write(json.dumps(run) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline()), said.read_text()

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait()


def serve() -> None:
    import snakemake.cli  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def run(arguments: list[str], folder: str, environment: dict[str, str], said: str) -> None:
    """Be `snakemake` with these arguments; does not return."""
    from snakemake.cli import main
    from snakemake.executors import touch

    touch.Executor.SLEEPING_TIME = 0  # after each job: dates of files are exact enough without it
    os.chdir(folder)
    os.environ.update(environment)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in environment
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(output, stream)
    status = 1
    try:
        main(["--cores", "2", *arguments])
        status = 0
    except SystemExit as end:
        status = end.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
