"""A real SLURM on this machine, for tests: one controller, a node of eight CPUs, a node with two virtual GPUs.

The daemons run as children of the test process with a configuration, ports, a munge key and a socket of their
own in a scratch folder, so that a SLURM that is already installed here is not disturbed. The GPUs are device
files that lead nowhere: SLURM hands them out, and nothing can compute on them.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "sinfo")
PACKAGES = ("slurm-wlm", "munge")

SLURM_CONF = r"""
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SlurmdParameters=config_overrides
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
EnforcePartLimits=ALL
MailProg=/bin/true
MinJobAge=600
KillWait=2
JobRequeue=0
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/finished
NodeName=cpu1 NodeHostname={host} NodeAddr=127.0.0.1 Port={cpu_port} CPUs=8 CoresPerSocket=8 RealMemory=64000
NodeName=gpu1 NodeHostname={host} NodeAddr=127.0.0.1 Port={gpu_port} CPUs=4 CoresPerSocket=4 RealMemory=64000 \
    Gres=gpu:2
PartitionName=cpu Nodes=cpu1 Default=YES DefMemPerCPU=500 MaxTime=1440 DefaultTime=10
PartitionName=gpu Nodes=gpu1 DefMemPerCPU=500 MaxTime=1440 DefaultTime=10
"""
GRES_CONF = """
AutoDetect=off
NodeName=gpu1 Name=gpu File={folder}/gpu[0-1]
"""


def install() -> str | None:
    """Install SLURM where that is possible without asking; returns why it cannot run here, or None."""
    if os.geteuid() != 0:
        return "the SLURM lab needs root, to make device files and start daemons"
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        if not shutil.which("apt-get"):
            return f"{', '.join(missing)} are not installed, and there is no apt-get to install them with"
        for command in (["update", "-qq"], ["install", "-qq", "--no-install-recommends", *PACKAGES]):
            done = subprocess.run(
                ["apt-get", "-y", *command],
                env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
                capture_output=True,
                text=True,
            )
            if done.returncode:
                return f"apt-get {command[0]} fails: {done.stderr.strip()[-300:]}"
    return None


@contextlib.contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """Start the lab in `folder`, yield the environment in which SLURM's commands reach it, stop it."""
    configure(folder)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}
    commands = {
        "munged": ["munged", "-F", "--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key",
                   f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/munge.seed"],
        "slurmctld": ["slurmctld", "-D", "-c"],
        "cpu1": ["slurmd", "-D", "-N", "cpu1"],
        "gpu1": ["slurmd", "-D", "-N", "gpu1"],
    }  # fmt: skip
    with contextlib.ExitStack() as stack:
        for name, command in commands.items():
            log = stack.enter_context(open(folder / f"{name}.log", "w"))
            daemon = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            stack.callback(stop, daemon)
            if name == "munged":
                wait_for(lambda: (folder / "munge.socket").exists(), 10, folder)
        wait_for(lambda: idle_nodes(environment) == {"cpu1", "gpu1"}, 30, folder)
        stack.callback(cancel_everything, environment)
        yield environment


def configure(folder: Path) -> None:
    """Write the configuration, the key and the two device files.

    Snakemake's jobs start their step by `srun` in an environment without SLURM_CONF. They find this lab again
    through an `srun` of ours that comes first in PATH.
    """
    ports = free_ports(3)
    values = {
        "folder": folder,
        "host": socket.gethostname().split(".")[0],
        **dict(zip(("controller_port", "cpu_port", "gpu_port"), ports, strict=True)),
    }
    (folder / "slurm.conf").write_text(SLURM_CONF.format(**values))
    (folder / "gres.conf").write_text(GRES_CONF.format(**values))
    for name in ("state", "spool", "spool/cpu1", "spool/gpu1"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(64))
    (folder / "munge.key").chmod(0o600)
    (folder / "bin").mkdir()
    srun = folder / "bin/srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    for name in ("gpu0", "gpu1"):
        os.mknod(
            folder / name, 0o666 | 0o020000, os.makedev(1, 3)
        )  # a character device, the same as /dev/null


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on just now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def wait_for(condition, seconds: float, folder: Path) -> None:
    """Wait until `condition()` holds; after `seconds`, fail with what the daemons logged last."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            logs = [f"{log.name}: {log.read_text()[-1500:]}" for log in sorted(folder.glob("*.log"))]
            raise TimeoutError("SLURM does not start\n" + "\n".join(logs))
        time.sleep(0.2)


def idle_nodes(environment: dict[str, str]) -> set[str]:
    return set(command(environment, "sinfo", "--noheader", "--Node", "--states=idle", "--format=%N").split())


def queue(environment: dict[str, str]) -> list[str]:
    """The identifiers of the jobs that wait or run."""
    return command(environment, "squeue", "--noheader", "--format=%A").split()


def cancel_when(environment: dict[str, str], state: str, comment: str) -> None:
    """Cancel the job with this comment (rule and wildcards), as soon as it is pending or running."""
    for _ in range(300):
        listed = command(environment, "squeue", "--noheader", f"--states={state}", "--format=%A %k")
        for line in listed.splitlines():
            if line.split(maxsplit=1)[1] == comment:
                time.sleep(1)
                command(environment, "scancel", line.split()[0])
                return
        time.sleep(0.5)


def cancel_everything(environment: dict[str, str]) -> None:
    """Cancel all jobs and wait for their ends: a job's processes outlive the daemon that started them."""
    command(environment, "scancel", "--user=root")
    deadline = time.monotonic() + 15
    while queue(environment) and time.monotonic() < deadline:
        time.sleep(0.2)


def command(environment: dict[str, str], *arguments: str) -> str:
    return subprocess.run(arguments, env=environment, capture_output=True, text=True).stdout


def stop(daemon: subprocess.Popen) -> None:
    daemon.terminate()
    try:
        daemon.wait(timeout=10)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def finished(environment: dict[str, str]) -> dict[str, dict[str, str]]:
    """What SLURM noted about every job that ended: its identifier -> field -> value."""
    text = (Path(environment["SLURM_CONF"]).parent / "finished").read_text()
    jobs = [dict(word.split("=", 1) for word in line.split(" ") if "=" in word) for line in text.splitlines()]
    return {job["JobId"]: job for job in jobs}
