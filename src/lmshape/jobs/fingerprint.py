"""What a rule's code amounts to, as a short string that changes when, and only when, the code does.

Snakemake sees the text of a rule but not the modules that its script imports. Their code is followed by name: of a
module counts what the script reaches, functions, classes and constants, directly or through others, and whatever the
module does when it is imported. Where names cannot be followed, as when a module is handed around, it counts whole.

What `lmshape.jobs` does beside a job's work (its log, devices, threads, memory, environment) never counts: it keeps
results as they would be on any machine.
"""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from lmshape.jobs.outline import ADDING, Chain, Outline, Statement, digest, outline

PACKAGE = Path(__file__).parents[1]
BESIDE = "jobs"  # the module of a package that no result depends on
ANY_NAME = {"globals", "locals", "vars", "dir", "eval", "exec"}  # by which all names of a module can be had
OWN_NAME = {"__package__", "__name__"}  # by which a module imports others of its package without naming it


def code(script: str | Path, *functions: str, package: Path = PACKAGE) -> str:
    """Hash of a script, of what it reaches in `package` by name, and of the data files that this names.

    `functions` are those that the script calls by names it is given (`lmshape.jobs.job.function`), as dotted names in
    the package. A data file (a template, say) is not Python, lies in the folder of a module, or below, and is named
    there in a string, or in another data file. Returns 16 hexadecimal digits, the same in every process.
    Raises LmshapeError for a file that is missing or is not Python.
    """
    return Code(package).of(Path(script), *functions)


def reads_wildcards(script: str | Path) -> bool:
    """Whether a script of Snakemake reads its wildcards, so that they are part of what it is given."""
    uses = chain.from_iterable(statement.uses for statement in outline(Path(script)).statements)
    return any(names[:2] == ("snakemake", "wildcards") for names in uses)


class Target(NamedTuple):
    """Where names lead: to what a module binds to `name`, or to the whole of it; `rest` is what is asked of that."""

    module: str
    name: str | None
    rest: Chain


class Node(NamedTuple):
    """A statement of a module that counts; of no statement: that the module is imported."""

    module: str
    statement: Statement | None = None

    def __hash__(self) -> int:
        return hash((self.module, id(self.statement)))

    def __eq__(self, other: object) -> bool:
        return self.module == other.module and self.statement is other.statement


class Code:
    """The code of a package as it is now: every module is read once, and followed once, for any number of scripts."""

    def __init__(self, package: Path = PACKAGE):
        self.package = package
        self.find = cache(self._find)
        self.outline = cache(self._outline)
        self.data_files = cache(self._data_files)
        self.beyond = cache(self._beyond)
        self.lines = cache(self._lines)
        self.asking: set[tuple[str, Chain]] = set()

    def of(self, script: Path, *functions: str) -> str:
        """As `code` of this package: module by module, what counts of each in the order in which it stands."""
        reached = self.reached(script, *functions)
        lines: list[str] = []
        for module in sorted({node.module for node in reached}, key=_shown):
            counted = (Node(module, statement) for statement in self.outline(module).statements)
            lines += chain.from_iterable(self.lines(node) for node in counted if node in reached)
        return digest("\n".join(lines).encode())

    def reached(self, script: Path, *functions: str) -> set[Node]:
        """All that counts for a script."""
        called = chain.from_iterable(self.lead(f"{self.package.name}.{function}") for function in functions)
        reached = {*self.whole(str(script)), *self.nodes(called)}
        waiting = list(reached)
        while waiting:
            new = self.beyond(waiting.pop()) - reached
            reached |= new
            waiting += new
        return reached

    def _lines(self, node: Node) -> list[str]:
        """Lines for a statement, the imports that it uses and the data files that it names."""
        module, statement = node
        shown, lines, imports = _shown(module), [], self.outline(module).imports
        for name in {names[0] for names in statement.uses}:
            for dotted in statement.imports.get(name, set()) | imports.get(name, set()):
                lines.append(f"{shown} {name} is {dotted}")
        for path in self.named(self.find(module).parent, statement.strings):
            lines.append(f"{path.name} {digest(path.read_bytes())}")
        return [f"{shown} {statement.digest}", *sorted(lines)]

    def named(self, folder: Path, strings: Iterable[str]) -> set[Path]:
        """The data files of a folder that are named in strings, and those that they name in turn."""
        found: set[Path] = set()
        waiting = [(folder, strings)]
        while waiting:
            folder, strings = waiting.pop()
            for path in self.data_files(folder):
                if path not in found and any(_names(path.name, string) for string in strings):
                    found.add(path)
                    waiting.append((path.parent, [path.read_text(encoding="utf-8", errors="replace")]))
        return found

    # --- files ---

    def _find(self, module: str) -> Path | None:
        """The file of a module by its dotted name, or of a script; None for other packages, and for what is none."""
        if module.endswith(".py"):
            return Path(module)
        first, *names = module.split(".")
        if first != self.package.name or names[:1] == [BESIDE]:
            return None
        stem = self.package.joinpath(*names)
        candidates = (stem.with_name(f"{stem.name}.py"), stem / "__init__.py")
        return next((path for path in candidates if path.is_file()), None)

    def _outline(self, module: str) -> Outline:
        path = self.find(module)
        return outline(path, "" if str(path) == module else module)

    def _data_files(self, folder: Path) -> list[Path]:
        """Those in the folder of a module, and below; a script has none."""
        inside = folder.is_relative_to(self.package)
        found = folder.rglob("*") if inside else ()
        return [path for path in found if path.is_file() and path.suffix not in (".py", ".pyc")]

    def modules(self) -> list[str]:
        """All of the package."""
        files = (path.relative_to(self.package.parent).with_suffix("") for path in self.package.rglob("*.py"))
        names = (".".join(file.parts).removesuffix(".__init__") for file in files)
        return [name for name in names if self.find(name)]

    # --- what counts where something counts ---

    def _beyond(self, node: Node) -> set[Node]:
        module, statement = node
        return set(self.used(module, statement) if statement else self.done(module))

    def done(self, module: str) -> Iterator[Node]:
        """What importing a module does: it imports others, and runs statements that do something."""
        found = self.outline(module)
        parent = module.rpartition(".")[0]
        for dotted in chain([parent] if self.find(parent) else (), found.stars, *found.imports.values()):
            yield from self.importing(dotted)
        for statement in found.statements:
            called = chain.from_iterable(
                self.targets(module, statement, names) for names in statement.calls_now
            )
            if statement.acts or any(self.remembers(target, set()) for target in called):
                yield Node(module, statement)

    def used(self, module: str, statement: Statement) -> Iterator[Node]:
        """What a statement uses."""
        yield Node(module)
        for dotted in chain.from_iterable(statement.imports.values()):
            yield from self.importing(dotted)
        for names in statement.uses:
            yield from self.nodes(self.targets(module, statement, names))
            if names[0] in ANY_NAME or names[:2] == ("sys", "modules"):
                yield from self.whole(module)
        own = OWN_NAME & {names[0] for names in statement.uses}
        if own and any(names[-1] in ("import_module", "__import__") for names in statement.calls):
            yield from self.everything()
        for string in statement.strings:
            if string.startswith(f"{self.package.name}.") and re.fullmatch(r"[\w.]+", string):
                # the beginning of a name may become that of any module
                yield from self.everything() if string.endswith(".") else self.nodes(self.lead(string))

    def importing(self, dotted: str) -> Iterator[Node]:
        """The longest part of a dotted name that is a module; its parents are imported with it."""
        names = dotted.split(".")
        while names and not self.find(".".join(names)):
            names.pop()
        if names:
            yield Node(".".join(names))

    def nodes(self, targets: Iterable[Target]) -> Iterator[Node]:
        """The statements that names lead to."""
        for module, name, _ in targets:
            if name is None:
                yield from self.whole(module)
            for statement in self.binding(module, name):
                yield Node(module, statement)

    def whole(self, module: str) -> Iterator[Node]:
        """All of a module, and what it has from others, which may be asked of it as well."""
        found = self.outline(module)
        yield Node(module)
        for statement in found.statements:
            yield Node(module, statement)
        if self.find(module) != Path(module):
            had = chain.from_iterable(self.asked(module, (name,)) for name in found.imports)
            yield from self.nodes(target for target in had if target.name)

    def everything(self) -> Iterator[Node]:
        for module in self.modules():
            yield from self.whole(module)

    # --- where names lead ---

    def binding(self, module: str, name: str | None) -> list[Statement]:
        return self.outline(module).binding.get(name, [])

    def targets(self, module: str, statement: Statement, names: Chain) -> list[Target]:
        """Where a chain of names in a statement leads in the package, if it does."""
        imported = [self.lead(dotted, names[1:]) for dotted in statement.imports.get(names[0], ())]
        return [*chain.from_iterable(imported), *self.asked(module, names)]

    def lead(self, dotted: str, rest: Chain = ()) -> list[Target]:
        """Where a dotted name leads, and what is asked of it."""
        names = (*dotted.split("."), *rest)
        lengths = range(len(names), 0, -1)
        module = next((m for n in lengths if self.find(m := ".".join(names[:n]))), None)
        asked = names[module.count(".") + 1 :] if module else ()
        if module is None or asked[:1] == (BESIDE,):
            return []
        found = self.asked(module, asked) if asked else []
        if not found and (not asked or asked[0] == "__dict__" or not asked[0].startswith("__")):
            return [Target(module, None, asked)]  # handed around, or asked for what it makes somehow
        return found

    def asked(self, module: str, names: Chain) -> list[Target]:
        """Where names lead that are looked up in a module: to what it binds, or has from others."""
        if (module, names) in self.asking:  # two modules have it from each other
            return []
        self.asking.add((module, names))
        outline = self.outline(module)
        found = [Target(module, names[0], names[1:])] if names[0] in outline.binding else []
        for dotted in outline.imports.get(names[0], ()):
            found += self.lead(dotted, names[1:])
        for star in filter(self.find, outline.stars):
            found += self.asked(star, names)
        self.asking.remove((module, names))
        return found

    def is_object(self, target: Target) -> bool:
        """Whether a name is bound to an object that may change, and not to a function or class."""
        return target.name is None or any(s.assigns for s in self.binding(target.module, target.name))

    def remembers(self, target: Target, seen: set[Target]) -> bool:
        """Whether a call of what names lead to may leave something in the package, as a decorator that registers."""
        if target in seen:
            return False
        seen.add(target)
        bound = self.binding(target.module, target.name)
        if target.rest:  # a method, of an object or a class
            return target.rest[0] in ADDING or not all(statement.literal for statement in bound)
        for statement in bound:
            called, changed = (
                chain.from_iterable(self.targets(target.module, statement, names) for names in some)
                for some in (statement.calls, statement.changes)
            )
            if (
                statement.assigns
                or "__init_subclass__" in statement.strings
                or any(map(self.is_object, changed))
                or any(self.remembers(other, seen) for other in called if not self.is_object(other))
            ):
                return True
        return False


def _shown(module: str) -> str:
    """The name of a module; a script has none, so that it may be moved."""
    return "" if module.endswith(".py") else module


def _names(file: str, string: str) -> bool:
    """Whether a string names a file, as it is or by a pattern that has an ending."""
    pattern = "*" in string and re.fullmatch(r"(?:.*/)?([\w*-]*\*[\w*-]*(?:\.\w+)+)", string)
    return file in string or (bool(pattern) and fnmatch(file, pattern[1]))
