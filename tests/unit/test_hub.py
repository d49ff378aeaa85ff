"""Fetching from the hub: huggingface_hub as it is, in a process of its own, against a server on this machine."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from hub_server import Hold, HubServer
from safetensors.torch import load_file

from lmshape.inputs import revisions
from lmshape.inputs.checkpoints import embedding

ROWS, WIDTH = 500, 64
TABLE_BYTES = ROWS * WIDTH * 4
BLOCK = 2**18  # what a read by range takes at least
# the client reads its settings from the environment once, when it is imported
WORKER = """
import json, sys
from lmshape.inputs import hub
from lmshape.errors import LmshapeError
for line in sys.stdin:
    try:
        answer = hub.fetch(*json.loads(line))
    except LmshapeError as error:
        answer = f"{type(error).__name__}: {error}"
    print(json.dumps(answer), flush=True)
"""


class Bomb:
    """A pickle that would make a file if it were run."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture(scope="module")
def server():
    with HubServer() as server:
        yield server


@pytest.fixture
def hub(server):
    server.clear()
    return server


class Worker(subprocess.Popen):
    """A process that fetches."""

    def __init__(self, endpoint: str, home: Path, **environment: str):
        settings = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        super().__init__(
            [sys.executable, "-c", WORKER],
            env=os.environ | settings | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, repository: str, revision: str, folder: Path, files: str = "model") -> None:
        print(json.dumps([repository, revision, str(folder), files]), file=self.stdin, flush=True)

    def answer(self) -> str:
        """The commit, or else the error's message."""
        return json.loads(self.stdout.readline())


@contextmanager
def worker(endpoint: str, home: Path, **environment: str):
    """Gives a function that fetches and returns the answer."""
    with Worker(endpoint, home, **environment) as process:

        def call(*arguments) -> str:
            process.ask(*arguments)
            return process.answer()

        yield call
        process.stdin.close()


@pytest.fixture(scope="module")
def fetch(server, tmp_path_factory):
    with worker(server.endpoint, tmp_path_factory.mktemp("home")) as call:
        yield call


def neox(folder: Path, seed: int = 0, **saving) -> Path:
    """A small untied decoder: two tables of 128,000 bytes in nine million bytes of weights."""
    torch.manual_seed(seed)
    config = transformers.GPTNeoXConfig(
        vocab_size=ROWS,
        hidden_size=WIDTH,
        intermediate_size=8192,
        num_hidden_layers=2,
        num_attention_heads=2,
    )
    transformers.GPTNeoXForCausalLM(config).save_pretrained(folder, **saving)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "modeling.py").write_text("raise SystemExit('code from the hub ran')")
    return folder


def to_torch(folder: Path, **options) -> Path:
    """Turn a folder's safetensors files into PyTorch files, with their index."""
    for path in folder.glob("*.safetensors"):
        name = path.name.replace("model", "pytorch_model", 1).replace(".safetensors", ".bin")
        torch.save(load_file(path), folder / name, **options)
        path.unlink()
    index = folder / "model.safetensors.index.json"
    if index.exists():
        text = index.read_text().replace('"model-', '"pytorch_model-').replace(".safetensors", ".bin")
        (folder / "pytorch_model.bin.index.json").write_text(text)
        index.unlink()
    return folder


def tables(folder: Path) -> dict[str, np.ndarray]:
    return {side: embedding(folder, side).table for side in ("input", "output")}


def assert_same_tables(folder: Path, other: Path) -> None:
    for side, table in tables(folder).items():
        np.testing.assert_array_equal(table, tables(other)[side])


def test_model_is_an_ordinary_folder_that_transformers_loads(hub, fetch, tmp_path):
    served = neox(tmp_path / "served")
    torch.save({"a copy": torch.zeros(2)}, served / "pytorch_model.bin")
    (served / "tf_model.h5").write_bytes(b"another copy")
    commit = hub.add("owner/neox", "main", served)
    folder = tmp_path / "models" / "neox"
    assert fetch("owner/neox", "main", folder) == commit == revisions.read(folder)
    assert set(os.listdir(folder)) == {"config.json", "model.safetensors", "tokenizer.json", "revision.json"}
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    np.testing.assert_array_equal(model.get_input_embeddings().weight.detach(), tables(served)["input"])
    np.testing.assert_array_equal(model.get_output_embeddings().weight.detach(), tables(served)["output"])


@pytest.mark.parametrize("container", ["safetensors", "zip"])
@pytest.mark.parametrize("sharded", [False, True], ids=["whole", "sharded"])
def test_trap_15_only_the_bytes_of_the_embeddings_are_fetched(hub, fetch, tmp_path, container, sharded):
    served = neox(tmp_path / "served", max_shard_size="1MB" if sharded else "1GB")
    if container == "zip":
        to_torch(served)
    assert len(list(served.glob("*model-*"))) > 3 or not sharded
    commit = hub.add("owner/neox", "main", served)
    folder = tmp_path / "tables"
    assert fetch("owner/neox", "main", folder, "embedding") == commit
    assert set(os.listdir(folder)) == {"config.json", "model.safetensors", "revision.json"}
    assert_same_tables(folder, served)
    suffix = ".bin" if container == "zip" else ".safetensors"
    whole = sum(path.stat().st_size for path in served.glob(f"*{suffix}"))
    assert 2 * TABLE_BYTES <= hub.content_sent(suffix) < 2 * TABLE_BYTES + 8 * BLOCK < whole
    if sharded:
        index = json.loads(next(served.glob("*.index.json")).read_text())["weight_map"]
        asked = {Path(request.path).name for request in hub.requests if request.path.endswith(suffix)}
        assert asked == {index["gpt_neox.embed_in.weight"], index["embed_out.weight"]}


@pytest.mark.parametrize("container", ["safetensors", "zip"])
def test_from_a_server_that_ignores_ranges_the_shards_of_the_tables_are_fetched_whole(
    hub, fetch, tmp_path, container
):
    served = neox(tmp_path / "served", max_shard_size="1MB")
    if container == "zip":
        to_torch(served)
    commit = hub.add("owner/neox", "main", served)
    hub.gives_ranges = False
    assert fetch("owner/neox", "main", tmp_path / "tables", "embedding") == commit
    assert_same_tables(tmp_path / "tables", served)
    assert set(os.listdir(tmp_path / "tables")) == {"config.json", "model.safetensors", "revision.json"}
    whole = sum(path.stat().st_size for path in served.glob("*model-*"))
    assert hub.content_sent(".bin" if container == "zip" else ".safetensors") < whole / 2


def test_trap_15_old_torch_stream_is_fetched_whole(hub, fetch, tmp_path):
    served = to_torch(neox(tmp_path / "served"), _use_new_zipfile_serialization=False)
    hub.add("owner/neox", "main", served)
    fetch("owner/neox", "main", tmp_path / "tables", "embedding")
    assert_same_tables(tmp_path / "tables", served)
    assert hub.content_sent(".bin") >= (served / "pytorch_model.bin").stat().st_size


def test_trap_16_tied_model_gives_one_table(hub, fetch, tmp_path):
    config = transformers.GPT2Config(vocab_size=ROWS, n_embd=WIDTH, n_layer=1, n_head=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "served")
    hub.add("owner/gpt2", "main", tmp_path / "served")
    fetch("owner/gpt2", "main", tmp_path / "tables", "embedding")
    assert list(load_file(tmp_path / "tables" / "model.safetensors")) == ["transformer.wte.weight"]
    assert embedding(tmp_path / "tables", "output").tied
    assert_same_tables(tmp_path / "tables", tmp_path / "served")


def test_tokenizer_comes_without_weights(hub, fetch, tmp_path):
    hub.add("owner/neox", "main", neox(tmp_path / "served"))
    fetch("owner/neox", "main", tmp_path / "tokenizer", "tokenizer")
    assert set(os.listdir(tmp_path / "tokenizer")) == {"config.json", "tokenizer.json", "revision.json"}
    assert hub.content_sent(".safetensors") == 0


def test_a_tokenizer_that_is_there_comes_and_none_has_to(hub, fetch, tmp_path):
    for name, lost in (("whole", []), ("bare", ["tokenizer.json"])):
        served = neox(tmp_path / f"served-{name}")
        for file in lost:
            (served / file).unlink()
        hub.add(f"owner/{name}", "main", served)
        fetch(f"owner/{name}", "main", tmp_path / name, "tokenizer-if-any")
    assert set(os.listdir(tmp_path / "whole")) == {"config.json", "tokenizer.json", "revision.json"}
    assert set(os.listdir(tmp_path / "bare")) == {"config.json", "revision.json"}


def test_whatever_file_a_tokenizer_comes_in_is_fetched_and_no_copy_from_a_folder(hub, fetch, tmp_path):
    served = tmp_path / "served"
    (served / "onnx").mkdir(parents=True)
    tokenizer = ["spm.model", "source.spm", "vocab-src.json", "tokenizer.model.v3", "added_tokens.json"]
    for name in ["config.json", "README.md", "onnx/tokenizer.json", *tokenizer]:
        (served / name).write_text("{}")
    hub.add("owner/deberta", "main", served)
    fetch("owner/deberta", "main", tmp_path / "tokenizer", "tokenizer")
    assert set(os.listdir(tmp_path / "tokenizer")) == {"config.json", "revision.json", *tokenizer}


def test_trap_12_steps_with_one_table_are_told_by_their_hash(hub, fetch, tmp_path):
    same, other = neox(tmp_path / "same"), neox(tmp_path / "other", seed=1)
    served = {"step1": same, "step2": same, "step3": other}
    commits = {step: hub.add("owner/neox", step, folder) for step, folder in served.items()}
    assert len(set(commits.values())) == 3
    hashes = {}
    for step in served:
        assert fetch("owner/neox", step, tmp_path / step, "embedding") == commits[step]
        hashes[step] = embedding(tmp_path / step).sha256()
    assert hashes["step1"] == hashes["step2"] != hashes["step3"]


def test_trap_13_missing_revision_fails_by_name_and_takes_no_other(hub, fetch, tmp_path):
    hub.add("owner/neox", "main", neox(tmp_path / "served"))
    message = fetch("owner/neox", "step3", tmp_path / "model")
    assert message == (
        "HubError: owner/neox at step3: has no such revision, and no other is taken in its place"
    )
    assert hub.content_sent("") == 0 and not (tmp_path / "model").exists()


def test_trap_13_commit_stays_when_the_revision_moves_on(hub, fetch, tmp_path):
    first, second = neox(tmp_path / "first"), neox(tmp_path / "second", seed=1)
    commit = hub.add("owner/neox", "main", first)
    hub.add("owner/neox", "main", second)
    assert fetch("owner/neox", commit, tmp_path / "model", "embedding") == commit
    assert_same_tables(tmp_path / "model", first)


def test_missing_repository_and_gated_repository_are_named(hub, fetch, tmp_path):
    assert "owner/none at main: no such repository" in fetch("owner/none", "main", tmp_path / "model")
    hub.gated.add("owner/gated")
    assert "owner/gated at main: is gated: accept its terms" in fetch(
        "owner/gated", "main", tmp_path / "model"
    )
    assert "gpt2 at main: no such repository" in fetch("a/b/gpt2", "main", tmp_path / "model")


@pytest.mark.parametrize(
    ("lost", "files", "message"),
    [
        ("config.json", "tokenizer", "has no config.json; it has model.safetensors"),
        ("tokenizer.json", "tokenizer", "has no tokenizer: expected one of tokenizer.json"),
        ("model.safetensors", "model", "no weights: expected one of model.safetensors"),
        ("model.safetensors", "embedding", "no weights: expected one of model.safetensors"),
    ],
)
def test_missing_file_is_named_and_leaves_no_folder(hub, fetch, tmp_path, lost, files, message):
    served = neox(tmp_path / "served")
    (served / lost).unlink()
    commit = hub.add("owner/neox", "main", served)
    assert f"owner/neox@{commit}: {message}" in fetch("owner/neox", "main", tmp_path / "model", files)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("files", ["model", "embedding"])
def test_shard_that_the_index_lists_and_the_hub_lacks_is_named(hub, fetch, tmp_path, files):
    served = neox(tmp_path / "served", max_shard_size="1MB")
    index = json.loads((served / "model.safetensors.index.json").read_text())["weight_map"]
    lost = index["gpt_neox.embed_in.weight"]
    (served / lost).unlink()
    hub.add("owner/neox", "main", served)
    assert lost in fetch("owner/neox", "main", tmp_path / "model", files)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("files", ["model", "embedding"])
def test_dropped_connection_is_taken_up_again(hub, fetch, tmp_path, files):
    served = neox(tmp_path / "served")
    hub.add("owner/neox", "main", served)
    hub.drops.append(1000)
    fetch("owner/neox", "main", tmp_path / "model", files)
    assert not hub.drops
    assert_same_tables(tmp_path / "model", served)


def test_interrupted_download_goes_on_where_it_stopped(hub, fetch, tmp_path):
    served = neox(tmp_path / "served", max_shard_size="1MB")
    shards = sorted(path.name for path in served.glob("*.safetensors"))
    hub.add("owner/neox", "main", served)
    hub.withheld.add(shards[-1])
    assert shards[-1] in fetch("owner/neox", "main", tmp_path / "model")
    assert not (tmp_path / "model").exists()
    hub.withheld.clear()
    fetch("owner/neox", "main", tmp_path / "model")
    assert_same_tables(tmp_path / "model", served)
    whole = sum((served / shard).stat().st_size for shard in shards)
    assert hub.content_sent(".safetensors") == whole  # none of them came twice
    assert [name for name in os.listdir(tmp_path) if name.endswith(".part")] == []


@pytest.fixture
def pair(server, tmp_path):
    """Two processes that fetch; they are as patient as the requests that a test holds up."""
    patience = {"HF_HUB_DOWNLOAD_TIMEOUT": "60", "HF_HUB_ETAG_TIMEOUT": "60"}
    with (
        Worker(server.endpoint, tmp_path / "home", **patience) as first,
        Worker(server.endpoint, tmp_path / "home", **patience) as second,
    ):
        yield first, second
        for process in (first, second):
            process.stdin.close()


def held(hub: HubServer, name: str) -> Hold:
    return hub.holds.setdefault(name, Hold())


def served_in_shards(hub: HubServer, folder: Path) -> list[str]:
    neox(folder, max_shard_size="1MB")
    hub.add("owner/neox", "main", folder)
    return sorted(path.name for path in folder.glob("*.safetensors"))


def assert_came_once(hub: HubServer, folder: Path, files: list[str]) -> None:
    """Of all these files of the folder that is served, each byte was sent, and none twice."""
    assert hub.content_sent(".safetensors") == sum((folder / name).stat().st_size for name in files)


def waits_for_a_lock(process: subprocess.Popen) -> bool:
    """Whether a process stands still until another one closes a file, as Linux lists it."""
    listed = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(fields[1] == "->" and fields[5] == str(process.pid) for fields in listed)


def test_of_two_processes_one_fetches_a_folder_and_its_result_serves_the_other(hub, pair, tmp_path):
    """A killed run leaves its job behind, and the next run's job must not take the folder from under it."""
    shards = served_in_shards(hub, tmp_path / "served")
    at_the_end = held(hub, shards[-1])
    first, second = pair
    first.ask("owner/neox", "main", tmp_path / "model")
    at_the_end.reached.wait()
    between_files = held(hub, shards[0])  # the first process has passed it
    second.ask("owner/neox", "main", tmp_path / "model")
    for _ in range(100):  # time enough for a process that does not wait for its turn
        if between_files.reached.wait(timeout=0.1) or waits_for_a_lock(second):
            break
    at_the_end.released.set()
    commit = first.answer()
    between_files.released.set()
    assert second.answer() == commit == revisions.read(tmp_path / "model")
    assert list(tmp_path.glob(".model*")) == []  # neither parts nor locks stay
    assert_same_tables(tmp_path / "model", tmp_path / "served")
    assert {"config.json", "tokenizer.json", *shards} <= set(os.listdir(tmp_path / "model"))
    assert_came_once(hub, tmp_path / "served", shards)


def test_a_process_that_waited_for_one_that_was_killed_goes_on_where_that_stopped(hub, pair, tmp_path):
    shards = served_in_shards(hub, tmp_path / "served")
    at_the_end = held(hub, shards[-1])
    first, second = pair
    first.ask("owner/neox", "main", tmp_path / "model")
    at_the_end.reached.wait()
    second.ask("owner/neox", "main", tmp_path / "model")
    first.kill()
    at_the_end.released.set()
    assert second.answer() == revisions.read(tmp_path / "model")
    assert_same_tables(tmp_path / "model", tmp_path / "served")
    assert_came_once(hub, tmp_path / "served", shards)


def test_a_file_that_went_while_others_arrived_is_named_and_leaves_no_folder(hub, pair, tmp_path):
    shards = served_in_shards(hub, tmp_path / "served")
    at_the_end = held(hub, shards[-1])
    first, _ = pair
    first.ask("owner/neox", "main", tmp_path / "model")
    at_the_end.reached.wait()
    next(tmp_path.glob(".model.*.part/tokenizer.json")).unlink()
    at_the_end.released.set()
    assert "tokenizer.json went from" in first.answer()
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("files", ["model", "embedding"])
def test_trap_21_pickles_that_run_code_are_refused(hub, fetch, tmp_path, files):
    served, trace = neox(tmp_path / "served"), tmp_path / "it ran"
    state = load_file(served / "model.safetensors") | {"bomb": Bomb(trace)}
    torch.save(state, served / "pytorch_model.bin")
    (served / "model.safetensors").unlink()
    hub.add("owner/neox", "main", served)
    assert "CheckpointError" in fetch("owner/neox", "main", tmp_path / "model", files)
    assert not trace.exists() and not (tmp_path / "model").exists()


def test_offline_the_clients_cache_is_all_there_is_and_what_it_lacks_is_named(hub, tmp_path):
    served = neox(tmp_path / "served")
    commit = hub.add("owner/neox", "main", served)
    home = tmp_path / "home"
    fill = "from huggingface_hub import snapshot_download; snapshot_download('owner/neox')"
    environment = os.environ | {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(home)}
    subprocess.run([sys.executable, "-c", fill], env=environment, check=True, capture_output=True)
    hub.requests.clear()
    with worker(hub.endpoint, home, HF_HUB_OFFLINE="1") as fetch:
        for files in ("model", "embedding", "tokenizer"):
            assert fetch("owner/neox", "main", tmp_path / files, files) == commit
        message = fetch("owner/neox", "step1", tmp_path / "step1")
        for blob in (home / "hub").rglob("blobs/*"):
            if blob.stat().st_size == (served / "model.safetensors").stat().st_size:
                blob.unlink()
        cleared = {
            files: fetch("owner/neox", "main", tmp_path / f"{files}-2", files)
            for files in ("model", "embedding")
        }
        next((home / "hub").rglob("snapshots/*/config.json")).with_name("model.safetensors").unlink()
        partial = fetch("owner/neox", "main", tmp_path / "model-3")
    assert_same_tables(tmp_path / "model", served)
    assert_same_tables(tmp_path / "embedding", served)
    assert "owner/neox at step1: not in the cache" in message
    for said in cleared.values():
        assert (
            "model.safetensors: a link to " in said
            and "HF_HUB_OFFLINE is set, and the client's cache" in said
        )
    assert "no weights: expected one of" in partial and "HF_HUB_OFFLINE is set" in partial
    assert hub.requests == []
