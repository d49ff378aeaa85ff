"""What names mean, as Python itself binds them, and as a reader of documentation takes them."""

import ast
import importlib
import inspect
import sys
import textwrap

import pytest

from lmshape.inputs import package_documentation
from lmshape.inputs.python_names import Names

MODULES = {
    "__init__": """
        import collections as external
        from . import algorithms, shadow
        from ._core import *
        from ._core import mean as average
        from .shadow import shadow, beside
        from ._late import *
        from collections import OrderedDict
        """,
    "_core": """
        import sys
        from .algorithms.deep import climb as _climb
        __all__ = ["mean", "std", "amax", "Base", "norm"]
        def mean(): pass
        def std(): pass
        def hidden(): pass
        def max(): pass
        amax = max
        class Base:
            def fit(self): pass
            def shown(self): pass
        class _norm_gen(Base):
            def fit(self): pass
        norm = _norm_gen()
        if sys.version_info > (3,):
            def sometimes(): pass
        try:
            from .nowhere import missing
        except ImportError:
            def missing(): pass
        try:
            from .algorithms.deep import walk as tried
            from collections import Counter
        except ImportError:
            tried = Counter = None
        if sys.version_info > (3,):
            def either(): pass
        else:
            from .algorithms.deep import climb as either
        match sys.version_info.major:
            case 3:
                from .algorithms.deep import climb as chosen
            case _:
                def chosen(): pass
        """,
    "_late": """
        from ._core import Base, mean
        __all__ = ["std"]
        __all__ += [name for name in ("Child", "kept")]
        def std(): pass
        def kept(): pass
        class Child(Base):
            climbs = mean
            class Inner:
                def method(self): pass
        """,
    "shadow": "def shadow(): pass\ndef beside(): pass\n",
    "algorithms/__init__": "from .deep import *\nfrom .deep import climb as deep\nfrom .. import _core",
    "algorithms/deep": "def climb(): pass\ndef walk(): pass\n",
}
PUBLIC = [
    *("mean", "average", "std", "amax", "Base", "shadow", "beside", "kept", "Child", "algorithms.climb"),
    *(
        "Child.fit",
        "Child.shown",
        "Child.climbs",
        "Child.Inner.method",
        "_core._norm_gen.shown",
        "algorithms.deep",
    ),
    *(
        "algorithms.walk",
        "algorithms._core.std",
        "_core._climb",
        "_core.sometimes",
        "_core.missing",
        "_core.tried",
        "_core.Counter",
        "_core.either",
        "_core.chosen",
        "_late.Base.fit",
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(names of a package called `made`, the package as Python imports it)"""
    root = tmp_path_factory.mktemp("packages")
    names = Names()
    for name, source in MODULES.items():
        path = root / "made" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        dotted = ".".join(part for part in ("made", *name.split("/")) if part != "__init__")
        names.add_module(dotted, ast.parse(textwrap.dedent(source)).body, name.endswith("__init__"))
    sys.path.insert(0, str(root))
    yield names, importlib.import_module("made")
    sys.path.remove(str(root))
    for module in [module for module in sys.modules if module.partition(".")[0] == "made"]:
        del sys.modules[module]


def own_name(found) -> str:
    return f"{found.__module__}.{found.__qualname__}"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_name_means_what_python_binds_it_to(made, name):
    names, package = made
    found = package
    for part in name.split("."):
        found = getattr(found, part)
    assert names.find(f"made.{name}") == own_name(found)


def test_a_name_that_python_does_not_bind_means_nothing(made):
    names, package = made
    for name in ("hidden", "max", "walk", "missing", "fit"):
        assert not hasattr(package, name) and names.find(f"made.{name}") is None
    assert names.find("unheard.of") is None


def test_an_instance_has_the_documentation_of_its_class(made):
    names, package = made
    assert names.find("made.norm") == own_name(type(package.norm)) == "made._core._norm_gen"


def test_what_is_imported_from_elsewhere_is_known_and_nothing_of_the_packages(made):
    names, _ = made
    assert names.find("made.OrderedDict") == "collections.OrderedDict"
    assert names.find("made.external.OrderedDict") == "collections.OrderedDict"


def test_names_of_a_real_package_are_those_that_python_binds():
    import networkx

    names = Names()
    for module in package_documentation.read_modules("networkx"):
        names.add_module(*module)
    functions = {name: getattr(found, "orig_func", found) for name, found in vars(networkx).items()}
    objects = {n: f for n, f in functions.items() if inspect.isfunction(f) or inspect.isclass(f)}
    objects = {n: f for n, f in objects.items() if f.__module__.startswith("networkx")}
    assert len(objects) > 700
    assert {name: names.find(f"networkx.{name}") for name in objects} == {
        name: own_name(found) for name, found in objects.items()
    }


# --- what a reader takes a name for ---------------------------------------------------------------------

SHOWN = {
    "numbers": "from ._core import *\nfrom ._fast import zeros\n",
    "numbers._core": "from ._fast import *\ndef std(): pass\ndef total(): pass\n",
    "numbers.matlib": "def zeros(): pass\n",
    "stats": "from ._stats import *\nfrom . import tests_of\n",
    "stats._stats": "import numbers as nb\nfrom ._spread import spread\ndef zscore(): pass\ndef total(): pass\n",
    "stats._spread": "def spread(): pass\n",
    "stats.tests_of": "def lonely(): pass\ndef twice(): pass\n",
    "stats._other": "def twice(): pass\n",
    "stats._rv": """
        class Rv:
            def std(self): pass
            def alone(self): pass
            def total(self): pass
            def one(self): pass
        class Normal(Rv):
            def two(self): pass
        class Mixin:
            def shared(self): pass
        class Figure(Mixin):
            pass
        """,
}


@pytest.fixture(scope="module")
def shown():
    names = Names()
    for name, source in SHOWN.items():
        names.add_module(name, ast.parse(textwrap.dedent(source)).body, "." not in name)
    return names


@pytest.mark.parametrize(
    ("reader", "written", "meant"),
    [
        ("stats._stats.zscore", "numbers.std", "numbers._core.std"),  # not the only std of this package
        ("stats._stats.zscore", "nb.std", "numbers._core.std"),
        ("stats._stats.zscore", "std", None),  # a method of some class, which nobody would call so
        ("stats._stats.zscore", "numbers.median", None),
        ("stats._stats.zscore", "unread.std", None),
        ("stats._stats.zscore", "spread", "stats._spread.spread"),  # imported
        ("stats._stats.zscore", "total", "stats._stats.total"),
        ("stats._rv.Rv.one", "total", "stats._rv.Rv.total"),  # its class before its module and package
        ("stats._rv.Normal.two", "total", "stats._rv.Rv.total"),  # inherited
        ("stats._rv.Rv.one", "zscore", "stats._stats.zscore"),  # of the package around the module
        ("stats._rv.Rv", "alone", "stats._rv.Rv.alone"),
        (
            "stats._spread.spread",
            "lonely",
            "stats.tests_of.lonely",
        ),  # the one function of the package called so
        ("stats._spread.spread", "twice", None),
        ("stats._spread.spread", "alone", None),
        ("stats._spread.spread", "Rv.alone", "stats._rv.Rv.alone"),
        ("stats._spread.spread", "Figure.shared", "stats._rv.Mixin.shared"),
        ("stats._spread.spread", ".Figure.shared", "stats._rv.Mixin.shared"),
        ("stats._spread.spread", ".alone", "stats._rv.Rv.alone"),
        ("stats._spread.spread", "tests_of.lonely", "stats.tests_of.lonely"),
        ("stats._spread.spread", ".std", "stats._rv.Rv.std"),  # of this package, whatever others have
        ("numbers._core.std", "zeros", "numbers._fast.zeros"),  # compiled: known, and not the other zeros
        ("numbers._core.std", "zscore", None),  # of another package
        ("numbers._core.std", "stats.zscore", "stats._stats.zscore"),
    ],
)
def test_a_reader_takes_a_name_for(shown, reader, written, meant):
    assert shown.read_by(reader, written) == meant
