"""The code hash: what must change it, what must not, and what it may cost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmshape.errors import LmshapeError
from lmshape.jobs import fingerprint

MODULES = {
    "__init__.py": '"""A package."""\n',
    "measure.py": "from demo import helpers\n\ndef measure(x):\n    return helpers.double(x)\n",
    "helpers.py": "def double(x):\n    from demo.deep import inner\n    return inner.FACTOR * x\n\n"
    "def half(x):\n    return x / 2\n",
    "unused.py": "VALUE = 1\n\ndef value():\n    return VALUE\n",
    "report.py": 'def render():\n    return open("page.html.j2").read()\n',
    "page.html.j2": "<p>{{ value }}</p>\n",
    "other.txt": "nobody reads this\n",
    "deep/__init__.py": "",
    "deep/inner.py": "from ..constants import LIMIT\nfrom . import sibling\nFACTOR = LIMIT + sibling.WIDTH\n",
    "deep/sibling.py": "WIDTH, HEIGHT = 4, 5\n",
    "constants.py": "LIMIT: int = 3\nOTHER = 4\n",
    "jobs/__init__.py": "",
    "jobs/job.py": "LOG = 1\n\ndef start():\n    print(LOG)\n",
}
SCRIPTS = {
    "measure": "from demo.jobs import job\njob.start()\nfrom demo.measure import measure\nprint(measure(3))\n",
    "unused": "def main():\n    import demo.unused\n    print(demo.unused.value())\n\nmain()\n",
    "report": "from demo import report\n\nreport.render()\n",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a small package `demo` and three scripts."""
    write(tmp_path / "demo", MODULES)
    write(tmp_path, {f"{name}.py": text for name, text in SCRIPTS.items()})
    return tmp_path


def code(project: Path, script: str, *functions: str) -> str:
    return fingerprint.code(project / f"{script}.py", *functions, package=project / "demo")


def codes(project: Path) -> dict[str, str]:
    return {name: code(project, name) for name in SCRIPTS}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize(
    ("module", "old", "new", "scripts"),
    [
        ("measure.py", "double(x)", "double(x + 1)", {"measure"}),
        ("helpers.py", "* x", "* x * 1", {"measure"}),
        ("helpers.py", "x / 2", "x // 2", set()),  # a function that nothing reaches
        ("deep/inner.py", "LIMIT + ", "LIMIT - ", {"measure"}),
        ("deep/sibling.py", "= 4, 5", "= 4, 6", {"measure"}),  # bound together
        ("constants.py", "= 3", "= 2", {"measure"}),
        ("constants.py", "= 4", "= 5", set()),
        ("unused.py", "= 1", "= 2", {"unused"}),  # a constant behind a function
        ("report.py", "read()", "read().strip()", {"report"}),
        ("jobs/job.py", "= 1", "= 2", set()),  # what a job does beside its work
    ],
)
def test_trap_1_an_edit_changes_exactly_the_scripts_that_reach_it_by_name(project, module, old, new, scripts):
    before = codes(project)
    path = project / "demo" / module
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert changed(before, codes(project)) == scripts


@pytest.mark.parametrize("module", [name for name in MODULES if name.endswith(".py")])
def test_what_is_added_and_not_used_changes_nothing(project, module):
    before = codes(project)
    path = project / "demo" / module
    path.write_text(
        f"import re\n{path.read_text()}\n\nPATTERN = re.compile('x')\n\n\ndef added():\n    return PATTERN\n"
    )
    assert codes(project) == before


def test_trap_1_an_edit_of_a_script_changes_that_script_alone(project):
    before = codes(project)
    (project / "report.py").write_text("from demo import report\n\nprint(report.render())\n")
    assert changed(before, codes(project)) == {"report"}


def test_the_order_and_the_number_of_a_scripts_statements_count(project):
    """A seed that is set after a model is built is another model."""
    path = project / "report.py"
    found = set()
    for calls in ("seed()\nbuild()", "build()\nseed()", "seed()\nseed()\nbuild()"):
        path.write_text(f"from demo import report\n\n{calls}\nreport.render()\n")
        found.add(code(project, "report"))
    assert len(found) == 3


# --- what is no code -------------------------------------------------------------------------------------


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
        ("f(1)\nf(2)\n", "f(2)\nf(1)\n"),
        ("f(1)\n", "f(1)\nf(1)\n"),
        ("x = 1\nx = 2\n", "x = 2\nx = 1\n"),
        ("def f(): return 1\ndef f(): return 2\n", "def f(): return 2\ndef f(): return 1\n"),
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


def test_a_data_file_that_another_names_counts_too(project):
    write(project / "demo", {"page.html.j2": '{% include "deep/part.j2" %}', "deep/part.j2": "<p>1</p>"})
    before = codes(project)
    write(project / "demo", {"deep/part.j2": "<p>2</p>"})
    assert changed(before, codes(project)) == {"report"}


@pytest.mark.parametrize("string", ['"other.txt"', '"*.txt"', 'f"{folder}/other.txt"', '"other" ".txt"'])
def test_a_data_file_is_named_by_any_form_of_string(project, string):
    (project / "demo/unused.py").write_text(f"folder = '.'\nname = {string}\n")
    before = codes(project)
    (project / "demo/other.txt").write_text("read by one\n")
    assert changed(before, codes(project)) == {"unused"}


def test_a_script_may_be_moved_without_changing(project):
    before = codes(project)["measure"]
    moved = (project / "measure.py").rename(project / "elsewhere.py")
    assert fingerprint.code(moved, package=project / "demo") == before


def test_trap_3_the_hash_is_the_same_under_every_hash_seed(project):
    command = (
        "import sys; from pathlib import Path; from lmshape.jobs import fingerprint\n"
        "print(fingerprint.code(Path(sys.argv[1]) / 'measure.py', package=Path(sys.argv[1]) / 'demo'))"
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
    script = Path(__file__).parents[2] / "scripts/table.py"
    assert fingerprint.code(script) != fingerprint.code(script, package=Path("/nowhere/else"))


def test_importing_it_imports_nothing_heavy():
    command = "import sys, lmshape.jobs.fingerprint; print({'torch', 'numpy', 'pydantic'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", command], check=True, capture_output=True, text=True)
    assert answer.stdout.strip() == "set()"
