"""What a rule's code amounts to, as a short string that changes when, and only when, the code does.

Snakemake sees the text of a rule but not the modules that its script imports. A rule that carries
`params: code=code("scripts/x.py")` is stale as soon as the script or any lmshape module behind it changes,
and stays fresh when only comments, docstrings or formatting do.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from lmshape.errors import LmshapeError

PACKAGE = Path(__file__).parents[1]
IGNORED_FIELDS = {"ctx", "kind", "type_comment"}  # each follows from the rest, or has no effect


class Outline(NamedTuple):
    """What a Python file amounts to, whatever its comments, docstrings and formatting."""

    digest: str
    imports: tuple[tuple[int, str], ...]  # dots of a relative import, dotted name
    strings: tuple[str, ...]


def code(script: str | Path, package: Path = PACKAGE) -> str:
    """Hash of a script, of the modules of `package` that it reaches, and of the data files that those name.

    A data file (a template, say) is not Python, lies in the module's own folder and is named there in a string.
    Returns 16 hexadecimal digits, the same in every process.
    Raises LmshapeError for a file that is missing or is not Python.
    """
    files = reached(script, package)
    parts = [f"{module} {outline(path).digest}" for module, path in files.items()]
    parts += [f"{path.name} {_digest(path.read_bytes())}" for path in _data_files(files)]
    return _digest("\n".join(sorted(parts)).encode())


def reached(script: str | Path, package: Path = PACKAGE) -> dict[str, Path]:
    """A script and the modules of `package` that it reaches: module name -> file.

    A module is reached by an import anywhere in the text (inside functions too), directly or through other
    modules of the package. The script has no name, so that it may be moved. Raises as `code` does.
    """
    files = {"": Path(script)}
    waiting = [""]
    while waiting:
        for module, path in _imported(waiting.pop(), files, package):
            if module not in files:
                files[module] = path
                waiting.append(module)
    return files


def versions(packages: Iterable[str]) -> dict[str, str | None]:
    """Installed versions of the packages that a rule takes data from: another version makes its outputs stale.

    Packages are named as they are imported. None where the process that plans the workflow has no such package:
    the job may have it in an environment of its own, or will say that it is missing.
    """
    return {package: _version(package) for package in packages}


@cache
def _version(package: str) -> str | None:
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # its distribution has another name: listing them all takes a while
        return metadata.version(metadata.packages_distributions()[package][0])


def _imported(module: str, files: dict[str, Path], package: Path) -> Iterator[tuple[str, Path]]:
    """The modules of `package`, with their files, that one file imports; importing a.b runs a as well."""
    path = files[module]
    home = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for level, name in outline(path).imports:
        parents = home[: len(home) - level + 1] if level else []
        names = [*parents, *name.split(".")]
        for length in range(1, len(names) + 1):
            if found := _find(names[:length], package):
                yield ".".join(names[:length]), found


def _find(names: list[str], package: Path) -> Path | None:
    """The file of a dotted name of `package`; None for other packages, and for names that are no module."""
    if names[0] != package.name:
        return None
    stem = package.joinpath(*names[1:])
    candidates = (stem.with_name(f"{stem.name}.py"), stem / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def _data_files(files: dict[str, Path]) -> set[Path]:
    """Files beside the package's modules that are not Python and that a module of that folder names in a string."""
    modules = [path for module, path in files.items() if module]
    data = {
        folder: [path for path in folder.iterdir() if path.is_file() and path.suffix not in (".py", ".pyc")]
        for folder in {path.parent for path in modules}
    }
    return {
        found
        for path in modules
        for found in data[path.parent]
        if any(found.name in string for string in outline(path).strings)
    }


def outline(path: Path) -> Outline:
    """What a file amounts to; raises as `code` does."""
    try:
        return _parse(path.read_bytes())
    except OSError as error:
        raise LmshapeError(
            f"{path}: cannot be read ({error.strerror}), and a rule names it as its code"
        ) from None
    except (SyntaxError, ValueError) as error:
        raise LmshapeError(f"{path}: is not valid Python ({error})") from None


@cache  # by content: an edit within one process is seen, and a module behind many scripts is parsed once
def _parse(source: bytes) -> Outline:
    imports: list[tuple[int, str]] = []
    strings: list[str] = []
    text = _canonical(ast.parse(source), imports, strings)
    return Outline(_digest(text.encode()), tuple(imports), tuple(strings))


def _canonical(node: object, imports: list[tuple[int, str]], strings: list[str]) -> str:
    """A syntax tree as text, without docstrings and positions; its imports and strings are appended to the lists.

    Empty fields are left out, so that a newer Python that adds an optional one changes nothing.
    """
    if isinstance(node, list):
        items = (_canonical(item, imports, strings) for item in node if not _is_bare_string(item))
        return f"[{','.join(items)}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Import):
        imports += [(0, alias.name) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        imports += [(node.level, ".".join(filter(None, (node.module, alias.name)))) for alias in node.names]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        strings.append(node.value)
    names = (name for name in node._fields if name not in IGNORED_FIELDS)
    fields = ((name, _canonical(getattr(node, name, None), imports, strings)) for name in names)
    return f"{type(node).__name__}({','.join(f'{k}={v}' for k, v in fields if v not in ('None', '[]'))})"


def _is_bare_string(node: object) -> bool:
    """Whether a statement is a string alone: a docstring, or a comment written as one."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
