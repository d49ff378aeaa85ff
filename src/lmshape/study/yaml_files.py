"""YAML files as people mean them: every scalar is the text that is written there, and the schema says what it is.

YAML 1.1, which PyYAML reads, takes `010` for 8, `1:30` for 90, `no` for false and a size called `1.10` for 1.1. Here
a text becomes a number, or true or false, only where a section wants one, so that names stay as they are written.
"""

from pathlib import Path
from typing import Any, NoReturn

import yaml

from lmshape.errors import ConfigError

# libyaml's, ten times as fast, where PyYAML was built with it; it leaves every scalar a text
LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

NOTHING = {"", "~", "null", "Null", "NULL"}  # where they are not quoted
UNTAGGED = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}
MERGE = "<<"


def read(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file: mappings, lists, texts, and None where nothing is said.

    ConfigError with the line for what is no YAML, a key given twice in one mapping, a key that is no text, and a tag.
    """
    node = compose(path)
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path}: expected a mapping of keys to values")
    try:
        return plain(node, path)
    except RecursionError:
        raise ConfigError(f"{path}: too many sections inside each other, or one that holds itself") from None


def compose(path: Path) -> yaml.Node | None:
    """What a file holds, with the places where it stands; ConfigError if it cannot be read or is no YAML."""
    try:
        with path.open("rb") as file:  # bytes: their encoding is YAML's to find out
            return yaml.compose(file, LOADER)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None


def plain(node: yaml.Node, file: Path, place: tuple[str, ...] = ()) -> Any:
    """A node as mappings, lists, texts and None; errors as in `read`. `place` are the keys that lead to it."""
    if node.tag not in UNTAGGED:
        refuse(node, file, place, f"write it without the tag {node.tag!r}")
    if isinstance(node, yaml.MappingNode):
        return mapping(node, file, place)
    if isinstance(node, yaml.SequenceNode):
        return [plain(part, file, (*place, str(index))) for index, part in enumerate(node.value)]
    return None if is_plain(node) and node.value in NOTHING else node.value


def mapping(node: yaml.MappingNode, file: Path, place: tuple[str, ...]) -> dict[str, Any]:
    """A mapping's own keys, after those that `<<` brings, which they replace; errors as in `read`."""
    found: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            refuse(key, file, place, "a key must be a text")
        here = (*place, key.value)
        if key.value in lines:
            refuse(key, file, here, f"this key is there twice, first in line {lines[key.value]}; keep one")
        lines[key.value] = line(key)
        if key.value == MERGE and is_plain(key):
            merged = merge(value, file, here)
        else:
            found[key.value] = plain(value, file, here)
    return merged | found


def merge(node: yaml.Node, file: Path, place: tuple[str, ...]) -> dict[str, Any]:
    """The keys that `<<` brings: of a mapping, or of several, of which the first counts most."""
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    merged: dict[str, Any] = {}
    for each in reversed(nodes):
        if not isinstance(each, yaml.MappingNode):
            refuse(each, file, place, "what is merged must be a mapping, or a list of mappings")
        merged |= mapping(each, file, place)
    return merged


def refuse(node: yaml.Node, file: Path, place: tuple[str, ...], why: str) -> NoReturn:
    raise ConfigError(f"{file} line {line(node)}: {'.'.join(place) or 'the file'}: {why}")


def is_plain(node: yaml.ScalarNode) -> bool:
    """Whether a scalar is written without quotes."""
    return not node.style


def line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def line_of(path: Path, place: tuple[str | int, ...]) -> int:
    """The line of what `place` leads to, or of the section that lacks it; parts that are no keys are passed over.

    For messages: the file is read anew, as nobody keeps lines where there is no mistake.
    """
    node = compose(path)
    found = line(node)
    for part in place:
        if isinstance(node, yaml.MappingNode):
            step = next(((key, value) for key, value in node.value if key.value == str(part)), None)
        else:
            there = isinstance(node, yaml.SequenceNode) and part in range(len(node.value))
            step = (node.value[part],) * 2 if there else None
        if step:
            found, node = line(step[0]), step[1]
    return found
