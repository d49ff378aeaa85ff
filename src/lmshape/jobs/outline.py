"""What a Python file says, statement by statement: what each binds, and what it does with the file's names.

Comments, docstrings and formatting are no part of it, nor is the version of Python that reads the file.
"""

import ast
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lmshape.errors import LmshapeError

Chain = tuple[
    str, ...
]  # a name and the attributes that are asked of it: ("tokens", "count") for tokens.count
Imports = dict[str, set[str]]  # the name that an import binds -> the dotted names that it may stand for

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LITERALS = (ast.Dict, ast.List, ast.Set, ast.Tuple, ast.Constant, ast.JoinedStr, *COMPREHENSIONS)
IMPORTS = (ast.Import, ast.ImportFrom)
LEAVES = (ast.Constant, ast.Load, ast.Store, ast.Del)
NOTED = (ast.Call, ast.Subscript, ast.Global, *DEFINITIONS)
ANNOTATIONS = ("annotation", "returns")
NAMES = (ast.Name, ast.Attribute)
# methods that change what they are methods of: those of lists, dictionaries and sets, and one that people write
ADDING = {
    "append", "extend", "insert", "update", "setdefault", "add", "pop", "popitem", "remove", "discard", "clear",
    "register",
}  # fmt: skip
IGNORED_FIELDS = {"ctx", "kind", "type_comment"}  # each follows from the rest, or has no effect


@dataclass
class Statement:
    """One statement at the top of a file, with all that is inside it.

    Its chains begin with names of the file, never with a local name. `calls` are called somewhere in it, or decorate,
    or are built on as base classes; `calls_now` are those of them that importing the file calls. `changes` are stored
    into, or asked for a method that is in ADDING.
    """

    digest: str
    binds: set[str]  # but for imports
    assigns: bool  # binds names to objects, which may change
    literal: bool  # to lists, dictionaries and the like that are written out
    acts: bool  # does something when the file is imported, other than to bind names
    imports: Imports
    uses: set[Chain] = field(default_factory=set)
    calls: set[Chain] = field(default_factory=set)
    calls_now: set[Chain] = field(default_factory=set)
    changes: set[Chain] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)


class Outline(NamedTuple):
    """A Python file: its statements, those that bind a name, what its imports bind, and what it takes whole (*)."""

    statements: list[Statement]
    binding: dict[str, list[Statement]]
    imports: Imports
    stars: set[str]


def outline(path: Path, module: str = "") -> Outline:
    """The outline of a file that is imported as `module`; LmshapeError where it is missing or is not Python."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    try:
        return _read(path.read_bytes(), package)
    except OSError as error:
        raise LmshapeError(
            f"{path}: cannot be read ({error.strerror}), and a rule names it as its code"
        ) from None
    except (SyntaxError, ValueError) as error:
        raise LmshapeError(f"{path}: is not valid Python ({error})") from None


def digest(content: bytes) -> str:
    """16 hexadecimal digits of a hash."""
    return hashlib.sha256(content).hexdigest()[:16]


@cache  # by content: an edit within one process is seen, and a module behind many scripts is read once
def _read(source: bytes, package: str) -> Outline:
    found = Outline([], {}, {}, set())
    for node in ast.parse(source).body:
        if isinstance(node, IMPORTS):
            bound = _imported(node, package)
        elif _is_bare_string(node) or _is_for_checkers(node):
            continue
        else:
            reader = _Reader(node, package)
            found.statements.append(reader.found)
            for name in reader.found.binds:
                found.binding.setdefault(name, []).append(reader.found)
            bound = reader.imported_now
        for name, dotted in bound:
            if name == "*":
                found.stars.add(dotted)
            else:
                found.imports.setdefault(name, set()).add(dotted)
    return found


class _Reader:
    """Reads one statement: `found` is what it comes to, `imported_now` what it imports when the file is imported."""

    def __init__(self, node: ast.stmt, package: str):
        defines = isinstance(node, DEFINITIONS)
        literal = isinstance(getattr(node, "value", None), LITERALS)
        acts = not (defines or _assigns(node))
        self.found = Statement("", _bound([node]), not defines, literal, acts, {})
        self.imported_now: list[tuple[str, str]] = []
        self.package = package
        self.text: list[str] = []
        self.plain = False  # in the definition of a function that has no decorator
        self.visit(node, frozenset(), True)
        self.found.digest = digest("\n".join(self.text).encode())

    def visit(self, node: object, local: frozenset[str], now: bool) -> None:
        """Write a part of the statement down; `local` are the names around it, `now` whether an import runs it."""
        kind = type(node)
        if kind is list:
            for item in node:
                if not _is_bare_string(item):
                    self.visit(item, local, now)
            self.text.append("]")
        elif kind in NAMES and (chain := _chain(node)):
            self.name(node, chain, local)
        elif kind in IMPORTS:  # what it binds counts where it is used
            bound = _imported(node, self.package)
            self.imported_now += bound if now else []
            for name, dotted in bound:
                self.found.imports.setdefault(name, set()).add(dotted)
        elif isinstance(node, ast.AST):
            if kind in NOTED:
                self.note(node, local, now)
            self.parts(node, local, now)
        else:
            self.text.append(repr(node))
            if kind is str:
                self.found.strings.add(node)

    def name(self, node: ast.Name | ast.Attribute, chain: Chain, local: frozenset[str]) -> None:
        """Write down a name with what is asked of it."""
        self.text.append("$" + ".".join(chain))
        if chain[0] not in local and not (type(node.ctx) is ast.Store and len(chain) == 1):
            self.found.uses.add(chain)
            if len(chain) > 1 and type(node.ctx) is not ast.Load:
                self.found.changes.add(chain[:-1])

    def parts(self, node: ast.AST, local: frozenset[str], now: bool) -> None:
        """Write down what a node is made of. Empty fields are left out: a newer Python may add an optional one."""
        kind, plain = type(node), self.plain
        inner, inside, then = local, (), now
        if kind in DEFINITIONS:  # a decorator may read annotations, as that of a dataclass does
            self.plain = kind is not ast.ClassDef and not node.decorator_list
        if kind in FUNCTIONS:
            body = node.body if kind is not ast.Lambda else [node.body]
            inner, inside, then = local | _arguments(node.args) | _bound(body), ("body",), False
        elif kind in COMPREHENSIONS:
            self.visit(node.generators[0].iter, local, now)  # is looked up outside
            inner = local | _bound([part.target for part in node.generators])
            inside = ("elt", "key", "value", "generators")
        self.text.append(kind.__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != [] and name not in IGNORED_FIELDS:
                self.text.append(name)
                if name in inside:
                    self.visit(value, inner, then)
                elif name in ANNOTATIONS and (self.plain or not now):
                    self.write(value)
                else:
                    self.visit(value, local, now)
        self.text.append(")")
        self.plain = plain

    def write(self, annotation: ast.AST) -> None:
        """Write down what is an annotation and no more: what it names is not used."""
        found, self.found = self.found, Statement("", set(), False, False, False, {})
        self.visit(annotation, frozenset(), False)
        self.found = found

    def note(self, node: ast.AST, local: frozenset[str], now: bool) -> None:
        """What a node does with the names of the file, beyond using them."""
        changed, called = (), []
        if isinstance(node, ast.Call):
            called = [_chain(node.func)]
            changed = called[0][:-1] if called[0][-1:] and called[0][-1] in ADDING else ()
        elif isinstance(node, DEFINITIONS):
            built_on = [*getattr(node, "bases", ()), *(k.value for k in getattr(node, "keywords", ()))]
            called = [_chain(part) for part in (*node.decorator_list, *built_on)]
        elif isinstance(node, ast.Subscript) and type(node.ctx) is not ast.Load:
            changed = _chain(node.value)
        elif isinstance(node, ast.Global):
            self.found.uses |= {(name,) for name in node.names}
            self.found.changes |= {(name,) for name in node.names}
        if changed and changed[0] not in local:
            self.found.changes.add(changed)
        for chain in called:
            if chain and chain[0] not in local:
                self.found.calls.add(chain)
                self.found.calls_now.update([chain] if now else ())


def _chain(node: ast.AST) -> Chain:
    """The chain of names that an expression is; none where it is another one."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, *reversed(attributes)) if isinstance(node, ast.Name) else ()


def _imported(node: ast.Import | ast.ImportFrom, package: str) -> list[tuple[str, str]]:
    """(name, the dotted name that it stands for) of all that an import binds in a module of `package`."""
    if isinstance(node, ast.Import):
        plain = [alias.name for alias in node.names if not alias.asname]
        # a.b.c binds a, and loads all three
        bound = [(dotted.partition(".")[0], dotted.partition(".")[0]) for dotted in plain]
        return (
            bound + [("", dotted) for dotted in plain] + [(a.asname, a.name) for a in node.names if a.asname]
        )
    parents = package.split(".")
    parents = parents[: len(parents) - node.level + 1] if node.level else []
    origin = ".".join(filter(None, (*parents, node.module)))
    return [
        ("*", origin) if alias.name == "*" else (alias.asname or alias.name, f"{origin}.{alias.name}")
        for alias in node.names
    ]


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that statements bind where they stand, but for imports: not in functions or classes inside them."""
    bound: set[str] = set()
    elsewhere: set[str] = set()  # imported, or global
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind is ast.Name:
            bound.update(() if type(node.ctx) is ast.Load else (node.id,))
        elif kind in DEFINITIONS:
            bound.add(node.name)
        elif kind in IMPORTS:
            elsewhere.update(name for name, _ in _imported(node, ""))
        elif kind is ast.Global:
            elsewhere.update(node.names)
        elif kind in COMPREHENSIONS:  # their targets are their own
            waiting += (part.target for part in ast.walk(node) if type(part) is ast.NamedExpr)
        elif kind is not ast.Lambda and kind not in LEAVES:
            bound.update(
                filter(None, (getattr(node, name, None) for name in ("name", "rest")))
            )  # except, match
            waiting += ast.iter_child_nodes(node)
    return bound - elsewhere


def _arguments(arguments: ast.arguments) -> set[str]:
    named = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    return {argument.arg for argument in named if argument}


def _assigns(node: ast.stmt) -> bool:
    """Whether a statement binds names to values, and does nothing else."""
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    parts = [part for target in targets if target for part in ast.walk(target)]
    plain = all(
        isinstance(part, ast.Name | ast.Tuple | ast.List | ast.Starred | ast.expr_context) for part in parts
    )
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Assign | ast.AnnAssign) and plain)


def _is_bare_string(node: object) -> bool:
    """Whether a statement is a string alone: a docstring, or a comment written as one."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_for_checkers(node: ast.stmt) -> bool:
    """Whether a statement is there for those that check types, and never run."""
    return isinstance(node, ast.If) and _chain(node.test)[-1:] == ("TYPE_CHECKING",) and not node.orelse
