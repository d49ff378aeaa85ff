import subprocess
import sys

import pytest

from lmshape.study.ablation_names import KINDS, Ablation


@pytest.mark.parametrize(
    "name", ["original", "random", "crop-128", "pad-14336", "pca-64", "centered", "shuffled"]
)
def test_a_name_is_read_and_written_back(name):
    assert str(Ablation.parse(name)) == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cropp-128", ["cropp-128", "crop-N", "did you mean crop?"]),
        ("crop", ["crop needs a number", "crop-128"]),
        ("crop-", ["crop needs a number"]),
        ("crop-0", ["1 or more"]),
        ("crop-1.5", ["1 or more"]),
        ("crop-٣", ["1 or more"]),
        ("random-3", ["takes no number", "write random"]),
        ("", ["allowed: original"]),
    ],
)
def test_a_wrong_name_is_refused_with_what_is_allowed(name, words):
    with pytest.raises(ValueError) as refusal:
        Ablation.parse(name)
    for word in words:
        assert word in str(refusal.value)


def test_only_what_draws_numbers_has_a_seed():
    drawing = {name for name, kind in KINDS.items() if Ablation(name, 8 if kind.numbered else None).random}
    assert drawing == {"random", "pad", "shuffled"}


@pytest.mark.parametrize(
    ("name", "width", "scored"),
    [("original", 96, 96), ("crop-32", 96, 32), ("pad-128", 96, 128), ("random", 96, 96)],
)
def test_width_is_the_number_of_dimensions_scored(name, width, scored):
    assert Ablation.parse(name).width(width) == scored


@pytest.mark.parametrize(
    ("name", "width", "possible"),
    [
        ("crop-128", 128, True),
        ("crop-129", 128, False),
        ("pca-129", 128, False),
        ("pad-128", 128, True),
        ("pad-127", 128, False),
        ("random", 14336, True),
        ("random", 14337, False),
        ("original", 99999, True),
    ],
)
def test_an_impossible_ablation_says_why(name, width, possible):
    reason = Ablation.parse(name).impossible(width)
    assert (reason is None) == possible
    assert possible or str(width) in reason


def test_names_import_nothing_heavy():
    heavy = "{'torch', 'numpy', 'scipy', 'transformers', 'polars'}"
    code = f"import sys, lmshape.study.ablation_names; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
