"""YAML files as typed sections that are closed to unknown keys; every mistake is named with what is allowed."""

import difflib
import re
from pathlib import Path
from typing import Annotated, Any, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from lmshape.errors import ConfigError

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]  # they are parts of paths

# In place of messages that speak of how it is checked; `Name` has the only pattern, and no list needs more than one.
IN_WORDS = {
    "string_pattern_mismatch": "a name is made of letters (a to z), digits, `.`, `_` and `-`, and begins with a "
    "letter or a digit",
    "too_short": "give at least one",
    "union_tag_not_found": "there is no `source` in it",
}

# Parts of a place that are no keys: which type was tried there
CHECKED = re.compile(r"\[key\]|(list|literal)\[.*\]")

# libyaml's, ten times as fast, where PyYAML was built with it
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Strict(BaseModel):
    """A section that refuses keys it does not know, and what a list says twice."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*")
    @classmethod
    def once(cls, given: Any) -> Any:
        """A list says nothing twice: its rows would be in a table twice."""
        twice = [part for part in given if given.count(part) > 1] if isinstance(given, list) else []
        if twice:
            raise ValueError(f"{twice[0]} is there twice")
        return given


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected a mapping of keys to values")
    return content


def parse(model: type[BaseModel], content: dict[str, Any], source: str) -> Any:
    """`content` as a `model`; ConfigError lists every mistake with its key and what is allowed there."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = [f"  {describe(model, mistake)}" for mistake in error.errors()]
        raise ConfigError("\n".join([f"{source} cannot be used:", *lines])) from None


def describe(model: type[BaseModel], mistake: dict[str, Any]) -> str:
    """One line for one mistake: the key, what is wrong, and what would be right."""
    where = ".".join(str(part) for part in mistake["loc"] if not CHECKED.fullmatch(str(part))) or "the file"
    if mistake["type"] == "extra_forbidden":
        allowed = keys_at(model, mistake["loc"][:-1])
        return f"{where}: there is no such key{closest(str(mistake['loc'][-1]), allowed)}"
    message = IN_WORDS.get(mistake["type"], mistake["msg"].removeprefix("Value error, "))
    given = "" if mistake["type"] == "missing" else f" (given: {mistake['input']!r})"
    return f"{where}: {message}{given if len(given) < 80 else ''}"


def closest(word: str, allowed: list[str]) -> str:
    """`; did you mean x? allowed: x, y, z`."""
    near = difflib.get_close_matches(word, allowed, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else ";"
    return f"{hint} allowed: {', '.join(allowed)}"


def keys_at(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """The keys of the section that `loc` leads to."""
    sections = [model]
    for part in loc:
        fields = [s.model_fields[part].annotation for s in sections if part in s.model_fields]
        if fields:  # a part that names no field is the key of a mapping, or the tag of a union
            sections = [found for field in fields for found in models_in(field)]
        elif part in map(tag, sections):
            sections = [s for s in sections if tag(s) == part]
    return sorted({key for section in sections for key in section.model_fields})


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Every model class inside a type such as `dict[str, Selection] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in models_in(part)]


def tag(section: type[BaseModel]) -> str | None:
    """The value of a section's `source` that tells it from its siblings."""
    field = section.model_fields.get("source")
    return get_args(field.annotation)[0] if field else None
