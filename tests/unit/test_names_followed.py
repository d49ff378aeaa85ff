"""Code is followed by name: however a script comes by a name, what it stands for counts, and no other name does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lmshape.jobs import fingerprint

MADE = "value = 1\nother = 0\n"
MODULES = {
    "__init__.py": "",
    "made.py": MADE,
    "measure.py": "def measure():\n    return 1\n",
    "helpers.py": "def double(x):\n    return 2 * x\n\ndef half(x):\n    return x / 2\n",
    "deep/__init__.py": "",
    "deep/sibling.py": "WIDTH, HEIGHT = 4, 5\n",
}


def ways() -> dict[str, tuple[str, dict[str, str]]]:
    """What names_followed.txt lists: scripts that use what demo/made.py binds to `value`, and their own modules."""
    text = Path(__file__).with_name("names_followed.txt").read_text()
    found = {}
    for name, case in re.findall(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)", text):
        script, *modules = re.split(r"(?m)^-- (.*)\n", case)
        found[name] = (script, dict(zip(modules[::2], modules[1::2], strict=True)))
    return found


WAYS = ways()
PLAIN = ("import", "in a", "had", "a relative", "a method", "a default")  # no other name of a module counts


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a small package `demo`."""
    write(tmp_path, MODULES)
    return tmp_path


def write(project: Path, modules: dict[str, str]) -> None:
    for name, text in modules.items():
        path = project / "demo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def code(project: Path, *functions: str, script: str = "") -> str:
    """The hash of a script; without one, of that which was written last."""
    if script:
        (project / "script.py").write_text(script)
    return fingerprint.code(project / "script.py", *functions, package=project / "demo")


@pytest.mark.parametrize("way", WAYS)
def test_a_name_is_followed_however_it_is_come_by(project, way):
    script, modules = WAYS[way]
    write(project, modules)
    before = code(project, script=script)
    subprocess.run([sys.executable, "-S", "script.py"], cwd=project, check=True)  # such a script can be
    path = project / "demo/made.py"
    path.write_text(path.read_text().replace("value = 1", "value = 2"))
    assert code(project) != before


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith(PLAIN) and "star" not in way])
def test_another_name_of_the_module_counts_for_nothing(project, way):
    script, modules = WAYS[way]
    write(project, modules)
    before = code(project, script=script)
    write(project, {"made.py": MADE.replace("other = 0", "other = 1\nmore = other")})
    assert code(project) == before


@pytest.mark.parametrize(
    "function",
    [
        "def f(made):\n    return [made]\n",
        "def f():\n    made = 1\n    return [made]\n",
        "def f():\n    for made in [1]:\n        yield made\n",
        "def f():\n    return [made for made in [1]]\n",
        "def f():\n    with open('x') as made:\n        return lambda: [made]\n",
        "def f(x):\n    match x:\n        case [*made]:\n            return made\n",
        "def f():\n    try:\n        pass\n    except ValueError as made:\n        raise made\n",
        "def f(x: made, y: int = 1) -> made:\n    z: made = x\n    return z\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import demo.made as m\ndef f(x: m):\n    pass\n",
        "class f:\n    def g(self):\n        if made := 1:\n            return [made]\n",
    ],
)
def test_a_local_name_is_not_the_module_of_that_name_and_an_annotation_uses_nothing(project, function):
    write(project, {"again.py": f"from demo import made\n{function}"})
    before = code(project, script="from demo.again import f\nf\n")
    write(project, {"made.py": MADE.replace("value = 1", "value = 2")})
    assert code(project) == before


def test_functions_that_a_script_is_given_by_name_count_as_its_own(project):
    script = "from demo.jobs import job\njob.function(snakemake.params.function)()\n"
    functions = ("helpers.double", "helpers.half")
    before = [code(project, script=script), *(code(project, function) for function in functions)]
    write(project, {"helpers.py": MODULES["helpers.py"].replace("x / 2", "x // 2")})
    after = [code(project), *(code(project, function) for function in functions)]
    assert len(set(before)) == 3 and after[:2] == before[:2] and after[2] != before[2]


def test_names_that_change_places_change_the_hash(project):
    script = "from demo.deep.sibling import {} as a, {} as b\nprint(a - b)\n"
    named = [
        code(project, script=script.format(*names)) for names in (("WIDTH", "HEIGHT"), ("HEIGHT", "WIDTH"))
    ]
    assert named[0] != named[1]


def test_another_package_of_the_same_name_changes_the_hash(project):
    found = set()
    for package in ("numpy", "cupy"):
        write(project, {"again.py": f"import {package} as np\ndef f():\n    return np.zeros(1)\n"})
        found.add(code(project, script="from demo.again import f\nf()\n"))
    assert len(found) == 2


def test_modules_that_have_a_name_from_each_other_are_followed_once(project):
    write(project, {"again.py": "from demo.once import x\n", "once.py": "from demo.again import x\n"})
    assert len(code(project, script="from demo.again import x\nx\n")) == 16
