"""A GPU of its own for every job that asks for one.

Snakemake's `--resources gpu=2` keeps two GPU jobs at once but does not say which device each may use: left
alone, both would take the first. So a job claims its devices here, before torch looks at them. A claim is a
lock that the kernel drops when the process ends, however it ends; nothing has to be cleaned up.
"""

import fcntl
import importlib.util
import logging
import os
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lmshape.errors import LmshapeError

logger = logging.getLogger(__name__)

SCHEDULER_VARIABLES = ("SLURM_JOB_ID", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
POLL_SECONDS = 0.2

_held: list[int] = []  # open lock files, never closed: a lock lasts until this process and its forks are gone


def installed() -> list[str]:
    """The identifiers of the NVIDIA devices that torch can use here, in the driver's order.

    A GPU that is divided (MIG) is replaced by its parts. The driver's own tool is asked, because torch would
    open every device to count them; how torch was built is read from its file, without importing it.
    """
    torch = importlib.util.find_spec("torch")
    if torch is None or runpy.run_path(str(Path(torch.origin).with_name("version.py")))["cuda"] is None:
        return []
    try:
        answer = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=120)
    except FileNotFoundError:
        return []
    if answer.returncode:
        logger.warning("nvidia-smi fails: %s", (answer.stderr or answer.stdout).strip())
        return []
    return _listed(answer.stdout)


def _listed(answer: str) -> list[str]:
    """The identifiers in what `nvidia-smi -L` prints: a line for each GPU, then one for each of its parts."""
    identifiers: list[str] = []
    for identifier in re.findall(r"UUID: ([^)\s]+)", answer):
        if identifier.startswith("MIG-") and identifiers and identifiers[-1].startswith("GPU-"):
            identifiers.pop()
        identifiers.append(identifier)
    return identifiers


def claim(count: int = 1, installed: Callable[[], list[str]] = installed, folder: Path | None = None) -> str:
    """Reserve `count` GPUs for this process, waiting for them if need be; returns torch's name of the device.

    Call it once, before torch is imported. The answer is "cuda", with CUDA_VISIBLE_DEVICES set to the claimed
    devices, or "cpu" where `count` is 0 or there is no GPU to use, which the log then says. If
    CUDA_VISIBLE_DEVICES is already set, the choice is among its devices; CUDA is told to number them as the
    driver's list does, unless CUDA_DEVICE_ORDER is set. Under SLURM, devices that the scheduler gave to this
    job alone are used as they are. `folder` holds the locks: it must be on this machine, and the same for
    every job of a user. Raises LmshapeError if there are GPUs, but fewer than `count`.
    """
    if count == 0:
        return "cpu"
    if "torch" in sys.modules:
        raise LmshapeError("claim a GPU before torch is imported: torch may already have opened another")
    if _held:
        raise LmshapeError("a process claims its GPUs once; this one already has")
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # CUDA's own default is the fastest first
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    scheduled = any(name in os.environ for name in SCHEDULER_VARIABLES)
    devices = _usable(setting, installed(), scheduled)
    if not devices:
        logger.warning("no GPU to use (CUDA_VISIBLE_DEVICES: %s): this job runs on the CPU", setting)
        return "cpu"
    if len(devices) < count:
        raise LmshapeError(f"{count} GPUs asked for, {len(devices)} usable (CUDA_VISIBLE_DEVICES: {setting})")
    if not (scheduled and len(devices) == count):
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(_wait(devices, count, folder or _lock_folder()))
    logger.info("CUDA_VISIBLE_DEVICES=%s", os.environ["CUDA_VISIBLE_DEVICES"])
    return "cuda"


def _usable(setting: str | None, identifiers: list[str], scheduled: bool) -> dict[str, str]:
    """The devices this process may use: the name to give CUDA -> the device's identifier.

    As CUDA does, read CUDA_VISIBLE_DEVICES (`setting`) up to the first entry that names no device. A SLURM
    job without that variable was given no GPU, and must not help itself to one.
    """
    if setting is None:
        return {} if scheduled else {identifier: identifier for identifier in identifiers}
    usable: dict[str, str] = {}
    for name in filter(None, (entry.strip() for entry in setting.split(","))):
        if name.isdigit():
            matches = identifiers[int(name) :][:1]
        else:  # CUDA accepts the beginning of an identifier
            matches = [identifier for identifier in identifiers if identifier.startswith(name)]
        if len(matches) != 1:
            break
        usable[name] = matches[0]
    return usable


def _wait(devices: dict[str, str], count: int, folder: Path) -> list[str]:
    """Lock `count` of the devices, when so many are free, and return their names."""
    taken = _lock_together(devices, count, folder)
    if not taken:
        logger.info("waiting for %d of the GPUs %s", count, ", ".join(devices))
    while not taken:
        time.sleep(POLL_SECONDS)
        taken = _lock_together(devices, count, folder)
    _held.extend(taken.values())
    return list(taken)


def _lock_together(devices: dict[str, str], count: int, folder: Path) -> dict[str, int]:
    """Lock `count` devices that nobody holds, or none: name -> open lock file.

    One process looks at a time; two that want two devices each could otherwise take one each, for ever.
    """
    turn = _open(folder / "turn")
    fcntl.flock(turn, fcntl.LOCK_EX)
    taken = _lock_free(devices, count, folder)
    if len(taken) < count:
        for file in taken.values():
            os.close(file)
        taken = {}
    os.close(turn)
    return taken


def _lock_free(devices: dict[str, str], count: int, folder: Path) -> dict[str, int]:
    """Lock up to `count` devices that nobody holds: name -> open lock file."""
    taken: dict[str, int] = {}
    for name, identifier in devices.items():
        if len(taken) == count:
            break
        file = _open(folder / identifier.replace("/", "_"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
        else:
            taken[name] = file
    return taken


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def _lock_folder() -> Path:
    """This user's folder of device locks on this machine.

    Not below TMPDIR, which a workflow may set for each job, nor in the home folder, which machines may share.
    """
    folder = Path(f"/tmp/lmshape-devices-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise LmshapeError(
            f"{folder}: cannot be made ({error.strerror}), and GPUs are claimed in it"
        ) from None
    if folder.lstat().st_uid != os.getuid():
        raise LmshapeError(
            f"{folder} belongs to another user, so that GPUs cannot be claimed in it; remove it"
        )
    return folder
