"""Sections of settings that are typed and closed to unknown keys; every mistake is named with what is allowed."""

import difflib
import re
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from lmshape.errors import ConfigError

Line = Callable[[tuple[str | int, ...]], int | None]  # the line of a file that a key is in, if a file has it
# They are parts of paths, and file systems take 255 bytes with what is added to them.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]

Seed = Annotated[int, Field(ge=0, lt=2**63)]  # what torch takes; part of a path, of digits


def for_snakemake(path: str) -> str:
    """A path that can be an input of a rule."""
    if set("{}<>") & set(path):
        raise ValueError(
            "Snakemake takes braces and < > in a path for names of its own: rename it, or make a link to it"
        )
    return path


OwnPath = Annotated[
    str, Field(min_length=1), AfterValidator(for_snakemake)
]  # of a file or folder of the user's

# In place of messages that speak of how it is checked; `Name` has the only pattern, and no list needs more than one.
IN_WORDS = {
    "string_pattern_mismatch": "a name is made of letters (a to z), digits, `.`, `_` and `-`, and begins with a "
    "letter or a digit",
    "too_short": "give at least one",
    "string_too_short": "it is empty",
    "string_too_long": "a name has 100 characters at most",
    "string_type": "a text is wanted, in quotes where it could be taken for something else",
    **dict.fromkeys(
        ("int_parsing", "int_type", "int_from_float"), "a whole number is wanted, of the digits 0 to 9"
    ),
    **dict.fromkeys(
        ("float_parsing", "float_type"), "a number is wanted, with a decimal point where it has decimals"
    ),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false is wanted"),
    "union_tag_not_found": "there is no `source` in it",
}

# Parts of a place that are no keys: which type was tried there
CHECKED = re.compile(r"\[key\]|(list|literal)\[.*\]")


class Strict(BaseModel):
    """A section that refuses keys it does not know, and what a list says twice."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def once(cls, given: Any) -> Any:
        """A list says nothing twice: its rows would be in a table twice."""
        twice = [part for part in given if given.count(part) > 1] if isinstance(given, list) else []
        if twice:
            raise ValueError(f"{twice[0]} is there twice")
        return given


def parse(
    model: type[BaseModel], content: dict[str, Any], source: str, line: Line = lambda place: None
) -> Any:
    """`content` as a `model`; ConfigError lists every mistake with its key, its line and what is allowed there."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = [f"  {describe(model, mistake, line)}" for mistake in error.errors()]
        raise ConfigError("\n".join([f"{source} cannot be used:", *lines])) from None


def describe(model: type[BaseModel], mistake: dict[str, Any], line: Line) -> str:
    """One line for one mistake: the key, where it is, what is wrong, and what would be right."""
    sections, place = led_to(model, mistake["loc"])
    where = ".".join(str(part) for part in place if not CHECKED.fullmatch(str(part))) or "the file"
    if place and (number := line(place)):
        where += f" (line {number})"
    if mistake["type"] == "extra_forbidden":
        allowed = sorted({key for section in sections for key in section.model_fields})
        return f"{where}: there is no such key{closest(str(place[-1]), allowed)}"
    message = IN_WORDS.get(mistake["type"], mistake["msg"].removeprefix("Value error, "))
    given = "" if mistake["type"] == "missing" else f" (given: {mistake['input']!r})"
    return f"{where}: {message}{given if len(given) < 80 else ''}"


def closest(word: str, allowed: list[str]) -> str:
    """`; did you mean x? allowed: x, y, z`."""
    near = difflib.get_close_matches(word, allowed, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else ";"
    return f"{hint} allowed: {', '.join(allowed)}"


def led_to(
    model: type[BaseModel], loc: tuple[str | int, ...]
) -> tuple[list[type[BaseModel]], tuple[str | int, ...]]:
    """The sections that the last part of `loc` is a key of, and `loc` as it is written: without tags of unions."""
    sections, written, named = [model], [], False  # whether the next part is a name in a mapping
    within = sections
    for part in loc:
        if not named and part in map(tag, sections):
            sections = within = [section for section in sections if tag(section) == part]
            continue
        written.append(part)
        within = sections
        fields = [s.model_fields[part].annotation for s in sections if part in s.model_fields and not named]
        named = any(map(is_mapping, fields))
        if fields:
            sections = [found for field in fields for found in models_in(field)]
    return within, tuple(written)


def is_mapping(annotation: Any) -> bool:
    """Whether it is a type such as `dict[str, Selection] | None`."""
    return get_origin(annotation) is dict or any(map(is_mapping, get_args(annotation)))


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Every model class inside a type such as `dict[str, Selection] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in models_in(part)]


def tag(section: type[BaseModel]) -> str | None:
    """The value of a section's `source` that tells it from its siblings."""
    field = section.model_fields.get("source")
    return get_args(field.annotation)[0] if field else None
