"""A retrieval data set out of docstrings: what is a query, a document and a judgement."""

import textwrap

import pytest

from lmshape.errors import LmshapeError
from lmshape.inputs import package_documentation as documentation
from lmshape.inputs import packages

WORDS = "Some words that describe what it does in enough detail to be found by a reader of it. " * 3


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make an importable package of the given modules."""

    def make(package: str = "mypackage", **modules: str) -> str:
        root = tmp_path / package
        root.mkdir()
        (root / "__init__.py").write_text("raise RuntimeError('the package must never be imported')")
        for name, source in modules.items():
            (root / f"{name}.py").write_text(textwrap.dedent(source))
        monkeypatch.syspath_prepend(tmp_path)
        return package

    return make


def function(name: str, summary: str, body: str = WORDS) -> str:
    return f'def {name}():\n    """{summary}\n\n{textwrap.indent(body, "    ")}\n    """\n'


def test_the_summary_is_the_query_and_the_rest_the_document(package):
    dataset = documentation.build([package(a=function("f", "Count the sheep in a field."))], 10)
    assert dataset.queries == {"q-mypackage.a.f": "Count the sheep in a field."}
    (document,) = dataset.documents
    assert document.id == "mypackage.a.f"
    assert "sheep" not in document.content
    assert dataset.qrels == {"q-mypackage.a.f": {"mypackage.a.f": 2}}


def test_what_the_authors_list_under_see_also_is_relevant_and_not_in_the_document(package):
    body = f"{WORDS}\nSee Also\n--------\ng, unknown : Description.\n    More of it.\n\nNotes\n-----\nA note."
    source = function("f", "Count the sheep in a field.", body) + function(
        "g", "Count all the goats.", WORDS + "G."
    )
    dataset = documentation.build([package(a=source)], 10)
    assert dataset.qrels["q-mypackage.a.f"] == {"mypackage.a.f": 2, "mypackage.a.g": 1}
    text = next(d.content for d in dataset.documents if d.id == "mypackage.a.f")
    assert "Description" not in text and text.endswith("A note.")


def test_a_name_of_another_package_is_no_method_of_this_one(package):
    """`numpy.std` beside `scipy.stats.zscore` is not the method that happens to be the only `std` of scipy."""
    listed = WORDS + "\nSee Also\n--------\nother.std, std, np.mean : Of numbers.\nmissing.rv\n"
    source = "import other as np\n" + function("zscore", "Compute the z score of numbers.", listed)
    source += "class rv:\n" + textwrap.indent(
        function("std", "The spread of the variable.", WORDS + "1"), "    "
    )
    ours = package(a=source)
    theirs = package(
        "other", b=function("std", "A spread.", WORDS + "2") + function("mean", "A mean.", WORDS + "3")
    )
    (packages.folder(theirs) / "__init__.py").write_text("from .b import *")
    both, alone = documentation.build([ours, theirs], 10), documentation.build([ours], 10)
    own = {"mypackage.a.zscore": 2}
    assert both.qrels["q-mypackage.a.zscore"] == own | {"other.b.std": 1, "other.b.mean": 1}
    assert alone.qrels["q-mypackage.a.zscore"] == own


def test_a_name_whose_documentation_is_a_copy_means_the_document_that_is_kept(package):
    listed = WORDS + "\nSee Also\n--------\nsecond"
    source = function("first", "One of two.", WORDS + "A") + function("second", "Two of two.", WORDS + "A")
    dataset = documentation.build(
        [package(a=source + function("f", "Count all the sheep there.", listed))], 10
    )
    assert dataset.qrels["q-mypackage.a.f"] == {"mypackage.a.f": 2, "mypackage.a.first": 1}


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("a\nb.c", ["a", "b.c"]),
        ("a : Description.\nb: Another, of c.", ["a", "b"]),
        ("a, b, c", ["a", "b", "c"]),
        ("a, b.c : Description of d, e.\n    continued : here\nf", ["a", "b.c", "f"]),
        ("a, b,", ["a", "b"]),
        ("a, b.", ["a", "b"]),
        (":func:`a`, :py:meth:`~b.c` : Description\n:obj:`d`", ["a", "b.c", "d"]),
        ("`a`, ``b``, c() : Description", ["a", "b", "c"]),
        (".Figure.add_axes\n`~.Axes.plot` : Description", [".Figure.add_axes", ".Axes.plot"]),
        ("a :\n    Description.\n\nb :\n    Another.", ["a", "b"]),
        ("      a\n      b : Description", ["a", "b"]),
        ("See the manual of it.\nTwo words", []),
        (".. note:: a\n\n    b", []),
        ("", []),
    ],
)
def test_the_forms_of_a_list_are_those_of_numpydoc(section, names):
    for heading in ("See Also\n--------", "See also\n========"):
        docstring = f"Summary.\n\n{heading}\n{section}\n\nNotes\n-----\nz"
        assert documentation.parse("f", docstring).see_also == tuple(names)


@pytest.mark.parametrize(
    ("docstring", "summary", "body"),
    [
        ("f(a, b=None, /)\n\nDo it.\n\nMore.", "Do it.", "More."),
        ("a, b = f(a,\n    b)\n--\n\nDo it\nnow.\n\nMore.", "Do it now.", "More."),
        ("f(a)\n\nf(a, b) -> int\n\nDo it.\n \nMore.", "Do it.", "More."),
        ("Do it (again).\n\nMore.", "Do it (again).", "More."),
        ("f(a)\n\nNotes\n-----\nMore.", "", "More."),
        ("Notes\n-----\nMore.", "", "More."),
        ("Do it.", "Do it.", ""),
        ("", "", ""),
    ],
)
def test_a_signature_is_no_summary(docstring, summary, body):
    entry = documentation.parse("f", docstring)
    assert (entry.summary, entry.body) == (summary, body)


def test_code_and_references_are_left_out():
    text = documentation.parse(
        "f",
        f"Summary of it.\n\n{WORDS}\n\n>>> f(1)\n2\n\nUse `g` or :func:`h`.\n\nExamples\n--------\nexample\n\n"
        "References\n----------\n[1] A book.",
    ).body
    assert text.endswith("Use g or h.")
    assert ">>>" not in text and "example" not in text and "book" not in text


def test_copies_are_one_document_and_shared_summaries_no_query(package):
    source = function("f", "Count the sheep in a field.") + function("alias", "Count the sheep in a field.")
    source += function("g", "Return the shape of it.", WORDS + "1") + function(
        "h", "Return the shape of it.", WORDS + "2"
    )
    dataset = documentation.build([package(a=source)], 10)
    assert [d.id for d in dataset.documents] == ["mypackage.a.f", "mypackage.a.g", "mypackage.a.h"]
    assert list(dataset.queries) == ["q-mypackage.a.f"]


def test_private_objects_and_tests_are_not_read(package):
    name = package(
        a=function("_f", "Count the sheep in a field."), test_a=function("g", "Count the goats too.")
    )
    tests = packages.folder(name) / "tests"
    tests.mkdir()
    (tests / "b.py").write_text(function("h", "Count the cows as well."))
    assert [d.id for d in documentation.build([name], 10).documents] == ["mypackage.test_a.g"]


def test_the_number_of_queries_is_bounded_and_their_choice_is_stable(package):
    source = "".join(function(f"f{i}", f"Count the sheep in field {i}.", f"{WORDS}{i}") for i in range(30))
    name = package(a=source)
    few, fewer = documentation.build([name], 20), documentation.build([name], 10)
    assert len(few.queries) == 20 and set(fewer.queries) < set(few.queries)


def test_packages_without_a_query_are_named(package):
    with pytest.raises(LmshapeError, match="no docstring of mypackage has a summary and a text"):
        documentation.build([package(a="def f():\n    pass\n")], 10)


@pytest.mark.parametrize("name", ["nonexistent_package", "os", "sys", "numpy.linalg", "-r x"])
def test_what_is_no_installed_package_is_named_with_the_key_that_lists_it(name):
    with pytest.raises(
        LmshapeError, match=f"retrieval.datasets: `packages` .* package {name} is not installed"
    ):
        documentation.build([name], 10)


@pytest.mark.slow
def test_real_packages_give_thousands_of_documents_and_graded_judgements():
    dataset = documentation.build(["numpy", "networkx", "polars"], 250)
    assert len(dataset.documents) >= 2000 and len(dataset.queries) == 250
    grades = [grade for judged in dataset.qrels.values() for grade in judged.values()]
    assert grades.count(2) == 250 and grades.count(1) > 100
    content = {document.id: document.content for document in dataset.documents}
    for query, text in dataset.queries.items():
        assert text not in content[query.removeprefix("q-")]
