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

    def make(**modules: str) -> str:
        root = tmp_path / "mypackage"
        root.mkdir()
        (root / "__init__.py").write_text("raise RuntimeError('the package must never be imported')")
        for name, source in modules.items():
            (root / f"{name}.py").write_text(textwrap.dedent(source))
        monkeypatch.syspath_prepend(tmp_path)
        return "mypackage"

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
    assert [entry.name for entry in documentation.read_package(name)] == ["mypackage.test_a.g"]


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


def test_real_packages_give_thousands_of_documents_and_graded_judgements():
    dataset = documentation.build(["numpy", "networkx", "polars"], 250)
    assert len(dataset.documents) >= 2000 and len(dataset.queries) == 250
    grades = [grade for judged in dataset.qrels.values() for grade in judged.values()]
    assert grades.count(2) == 250 and grades.count(1) > 100
    content = {document.id: document.content for document in dataset.documents}
    for query, text in dataset.queries.items():
        assert text not in content[query.removeprefix("q-")]
