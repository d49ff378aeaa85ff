"""Code that comes with a model or its tokenizer: it is never run, and nothing else is taken in its place."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmshape.errors import LmshapeError


def refuse(
    settings: Mapping[str, Any], auto: str, path: Path, error: type[LmshapeError], advice: str
) -> None:
    """Raise `error` if `auto_map` among the settings in a file names no class or one that transformers does not have.

    `auto` is how the names of the automatic classes begin that are asked about: AutoTokenizer, AutoModel. Without
    that code transformers would take a class of its own for the model type that the file says, and be wrong: a
    JinaBERT says that it is a BERT.
    """
    import transformers

    named = settings.get("auto_map")
    of_class = named if isinstance(named, dict) else {"AutoTokenizer": named}  # older files give a list
    found = [classes for key, classes in of_class.items() if key.startswith(auto)]
    every = [name for classes in found for name in (classes if isinstance(classes, list) else [classes])]
    names = [name for name in every if isinstance(name, str)]
    known = {name.lower() for name in dir(transformers)}  # MPT's own code writes its name in capitals
    if names and not any(_class(name) in known for name in names):
        raise error(
            f"{path}: needs code of its own ({', '.join(names)}), which lmshape does not run; {advice}"
        )
    if others := [name for name in every if name is not None and not isinstance(name, str)]:
        raise error(f"{path}: `auto_map` must name classes, and has {others[0]!r}; fetch or save it again")


def _class(name: str) -> str:
    return name.rpartition(".")[2].removesuffix("Fast").lower()
