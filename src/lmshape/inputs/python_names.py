"""What names mean to a reader of Python packages, from sources that are parsed and never run.

An object's own name is that of the module and class that define it. Imports, `import *`, aliases and inheritance lead
there from its other names: `numpy.std` is what `numpy` imports by that name.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Binding(NamedTuple):
    """What a name stands for: what `written` means in the scope `where`, or all of that scope, or else itself.

    `made` by a call of what is written: the name of an instance, which has the documentation of its class.
    """

    where: str = ""
    written: str = ""
    made: bool = False


@dataclass
class Scope:
    """The names of a module or class, and whose names it has too: base classes, or modules imported whole.

    `instead` is what a name is bound to where what it is bound to is not there.
    """

    module: str
    bound: dict[str, Binding] = field(default_factory=dict)
    instead: dict[str, Binding] = field(default_factory=dict)
    others: list[Binding] = field(default_factory=list)
    exported: set[str] | None = None  # `__all__`, where it is there and written out

    def bind(self, names: Mapping[str, Binding], instead: bool) -> None:
        """Bind names, or say what they are bound to `instead` where they are bound already."""
        for name, binding in names.items():
            if instead and name in self.bound:
                self.instead.setdefault(name, binding)
            else:
                self.bound[name] = binding

    def exports(self, name: str) -> bool:
        """Whether `import *` takes a name."""
        return not name.startswith("_") if self.exported is None else name in self.exported


class Names:
    """Modules, their classes and functions, and all the names that these have."""

    def __init__(self) -> None:
        self.scopes: dict[str, Scope] = {}
        self.ends: defaultdict[str, list[str]] = defaultdict(list)  # last part of its own name -> objects
        self.roots: set[str] = set()  # packages that are taken up or imported

    def add_module(self, name: str, body: list[ast.stmt], package: bool) -> None:
        """Take up a module by its statements; `package` where other modules lie in it."""
        self.roots.add(name.partition(".")[0])
        self.ends[name.rpartition(".")[2]].append(name)
        self._add(name, Scope(name), body, name if package else name.rpartition(".")[0])

    def _add(self, name: str, scope: Scope, body: list[ast.stmt], package: str) -> None:
        self.scopes[name] = scope
        for node, instead in statements(body):
            if isinstance(node, ast.ClassDef | Function):
                scope.bind({node.name: Binding()}, instead)
                self.ends[node.name].append(f"{name}.{node.name}")
            if isinstance(node, ast.ClassDef):
                bases = [Binding(name, ast.unparse(base)) for base in node.bases]
                self._add(f"{name}.{node.name}", Scope(scope.module, others=bases), node.body, package)
            elif isinstance(node, ast.Import):
                scope.bind({a.asname or a.name.partition(".")[0]: imported(a) for a in node.names}, instead)
                self.roots |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                source = absolute(node, package)
                bound = {a.asname or a.name: Binding(source, a.name) for a in node.names}
                scope.others += [Binding(source)] if bound.pop("*", None) else []
                scope.bind(bound, instead)
                self.roots.add(source.partition(".")[0])
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                assigned_to = node.targets if isinstance(node, ast.Assign) else [node.target]
                targets = [target.id for target in assigned_to if isinstance(target, ast.Name)]
                scope.bind(dict.fromkeys(targets, assigned(node.value, name)), instead)
                if "__all__" in targets:
                    scope.exported = strings(node.value)
            if scope.exported is not None and (more := extension(node)):
                added = strings(more)
                scope.exported = None if added is None else scope.exported | added

    def find(self, written: str, where: str = "") -> str | None:
        """The object or module that a dotted name means in a scope, or anywhere (""); None if the name is unknown.

        What is not among the modules, but imported from there or a part of it, goes by the name it is imported by.
        """
        return self._find(written, where, {})

    def _find(self, written: str, where: str, seen: dict) -> str | None:
        first, *rest = written.split(".")
        found = self._member(where, first, seen) if where else first if first in self.roots else None
        if found is None and self.is_class(where):
            found = self._member(self.scopes[where].module, first, seen)
        return found and self._walk(found, rest, seen)

    def _walk(self, found: str, parts: list[str], seen: dict) -> str | None:
        """The object that parts of a name lead to from another one."""
        for part in parts:
            if found is not None:
                found = self._member(found, part, seen) if found in self.scopes else f"{found}.{part}"
        return found

    def _member(self, scope: str, name: str, seen: dict) -> str | None:
        """The object that a scope has by a name; `seen` are those found, or asked for: modules import each other."""
        itself = f"{scope}.{name}"
        if itself not in seen:
            within = itself if itself in self.scopes else None  # a module, where nothing else is found
            seen[itself] = within
            seen[itself] = self._sought(scope, name, seen) or within
        return seen[itself]

    def _sought(self, scope: str, name: str, seen: dict) -> str | None:
        if scope not in self.scopes:
            return None
        if binding := self.scopes[scope].bound.get(name):
            if not self._is_there(binding, scope, seen):
                binding = self.scopes[scope].instead.get(name, binding)
            return self._bound(binding, f"{scope}.{name}", seen)
        found = (self._member(other, name, seen) for other in self._others(scope, name, seen))
        return next(filter(None, found), None)

    def _is_there(self, binding: Binding, scope: str, seen: dict) -> bool:
        """Whether what a name of a scope is bound to can be had; what is of other packages can."""
        if not binding.written or binding.where.partition(".")[0] != scope.partition(".")[0]:
            return True
        return binding.where == scope or self._find(binding.written, binding.where, seen) is not None

    def _bound(self, binding: Binding, itself: str, seen: dict) -> str | None:
        """What a binding leads to; what is not known there goes by the name it would have."""
        if not binding.written:
            return binding.where or itself
        found = self._find(binding.written, binding.where, seen)
        if binding.made and not self.is_class(found):
            return itself
        return found or f"{binding.where}.{binding.written}"

    def _others(self, scope: str, name: str, seen: dict) -> Iterator[str]:
        """The base classes of a class, first to last; the modules that a module imports whole, last to first."""
        others = self.scopes[scope].others
        for other in others if self.is_class(scope) else reversed(others):
            found = self._bound(other, "", seen)
            if found in self.scopes and (self.is_class(found) or self.scopes[found].exports(name)):
                yield found

    def is_class(self, name: str | None) -> bool:
        return name in self.scopes and self.scopes[name].module != name

    def is_module(self, name: str) -> bool:
        return name in self.scopes and self.scopes[name].module == name

    def read_by(self, reader: str, written: str) -> str | None:
        """The object that a name means in the documentation of the object `reader`; None where that is not clear.

        Taken in turn: a full name; a name of the class that it stands in, of the module, of the packages around the
        module, and of the object itself; the one object of the package that it means from anywhere. Of a name without
        a dot, that is a function or class of a module, not a method of some class. A leading dot, as in Sphinx, asks
        for that one alone.
        """
        name = written.lstrip(".")
        scopes = [*[""] * ("." in name), *self._around(reader), reader] if name == written else []
        meant = (self.find(name, scope) for scope in scopes)
        return next(filter(None, meant), None) or self._end(name, reader, any_depth=name != written)

    def _around(self, reader: str) -> Iterator[str]:
        """The scopes that an object is in, inmost first."""
        while reader := reader.rpartition(".")[0]:
            yield reader

    def _end(self, name: str, reader: str, any_depth: bool) -> str | None:
        """The one object of a reader's package that a name could mean, read from any class or module of it."""
        first, *rest = name.split(".")
        beginnings = (
            one
            for one in self.ends.get(first, ())
            if one.startswith(reader.partition(".")[0] + ".")
            and (one in self.scopes if rest else not self.is_module(one))
            and (rest or any_depth or self.is_module(one.rpartition(".")[0]))
        )
        found = {self._walk(one, rest, {}) for one in beginnings} - {None}
        return found.pop() if len(found) == 1 else None


def statements(body: list[ast.stmt], instead: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of a module or class, those within `if`, `try`, `match` and `with` among them.

    With each, whether it is done `instead` of one before: in a handler of errors, an `else` or a later `case`.
    """
    for node in body:
        yield node, instead
        if isinstance(node, ast.If | ast.Try | ast.TryStar | ast.With):
            yield from statements(node.body, instead)
            for handler in getattr(node, "handlers", ()):
                yield from statements(handler.body, True)
            yield from statements(getattr(node, "orelse", []), instead or isinstance(node, ast.If))
            yield from statements(getattr(node, "finalbody", []), instead)
        elif isinstance(node, ast.Match):
            for number, case in enumerate(node.cases):
                yield from statements(case.body, instead or number > 0)


def imported(alias: ast.alias) -> Binding:
    """What `import a.b` binds `a` to, and `import a.b as c` binds `c` to."""
    return Binding(alias.name if alias.asname else alias.name.partition(".")[0])


def absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that `from ... import` in a package's module reads."""
    parts = package.split(".")
    parents = parts[: len(parts) - node.level + 1] if node.level else []
    return ".".join([*parents, *filter(None, [node.module])])


def assigned(value: ast.expr, where: str) -> Binding:
    """What a name is bound to: to another name, to an instance of a class, or to something of its own."""
    made = isinstance(value, ast.Call)
    written = ast.unparse(value.func if made else value)
    dotted = all(part.isidentifier() and not iskeyword(part) for part in written.split("."))
    return Binding(where, written, made) if dotted else Binding()


def extension(node: ast.stmt) -> ast.expr | None:
    """What a statement adds to `__all__`, by `+=` or by a method."""
    if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == "__all__":
        return node.value
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args:
        return node.value.args[0] if ast.unparse(node.value.func).startswith("__all__.") else None
    return None


def strings(value: ast.expr) -> set[str] | None:
    """The strings of a list that is written out; None for one that is computed."""
    try:
        return {str(item) for item in ast.literal_eval(value)}
    except (ValueError, TypeError):
        return None
