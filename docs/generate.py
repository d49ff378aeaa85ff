"""Write the configuration page and the JSON Schemas from the typed models: `python docs/generate.py`.

A test compares them with the files in docs/, so they cannot drift apart.
"""

import json
from pathlib import Path
from typing import Any

from lmshape.study.config import Study
from lmshape.study.strict import Strict
from lmshape.study.suites import Suite

DOCS = Path(__file__).parent
INTRODUCTION = """# Configuration

Written by `python docs/generate.py` from `src/lmshape/study/config.py` and `suites.py`; do not edit.

A study is one YAML file: `config.yaml`, or the one that `--configfile` names, which is used whole and alone.
`--config key=value` replaces one top-level key of it. A suite, a family of models, is one file in `suites/`.
Unknown keys and keys given twice are refused, with their line. What is written is what is meant: `010` is ten where a
number is wanted, and `1.10`, `no` or `2026-11-30` is a name where a name is. Editors that know JSON Schema can check
studies against `docs/study.schema.json` and suites against `docs/suite.schema.json`.
"""


def main() -> None:
    for name, content in pages().items():
        (DOCS / name).write_text(content, encoding="utf-8")


def pages() -> dict[str, str]:
    """File name -> content of everything generated."""
    chapters = [INTRODUCTION, chapter("A study", Study), chapter("A suite", Suite)]
    schemas = {
        f"{model.__name__.lower()}.schema.json": json.dumps(model.model_json_schema(), indent=2) + "\n"
        for model in (Study, Suite)
    }
    return {"configuration.md": "\n".join(chapters), **schemas}


def chapter(title: str, model: type[Strict]) -> str:
    """A heading, then a table of keys for the model and for each section inside it."""
    schema = model.model_json_schema()
    sections = [(title, schema)] + sorted(schema.get("$defs", {}).items())
    return f"## {title}\n\n" + "\n".join(section(name, part) for name, part in sections)


def section(name: str, schema: dict[str, Any]) -> str:
    """The keys of one section as a table."""
    required = schema.get("required", [])
    rows = [
        f"| `{key}` | {kind(value)} | {default(value, key in required)} | {meaning(value)} |"
        for key, value in schema["properties"].items()
    ]
    head = [f"### {name}", "", schema.get("description", ""), ""]
    return "\n".join([*head, "| key | type | default | meaning |", "| --- | --- | --- | --- |", *rows, ""])


def meaning(value: dict[str, Any]) -> str:
    return value.get("description", "Which kind of section this is." if "const" in value else "")


def default(value: dict[str, Any], required: bool) -> str:
    if required:
        return "required"
    return f"`{json.dumps(value['default'])}`" if "default" in value else "see the section"


def kind(value: dict[str, Any]) -> str:
    """A type in words, with links to the sections it names."""
    if "$ref" in value:
        name = value["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "const" in value or "enum" in value:
        return " or ".join(f"`{choice}`" for choice in value.get("enum", [value.get("const")]))
    for choice in ("anyOf", "oneOf"):
        if choice in value:
            return " or ".join(kind(option) for option in value[choice])
    if value["type"] == "array":
        return f"list of {kind(value['items'])}"
    if value["type"] == "object":
        entries = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
        return f"name to {kind(entries[0])}"
    return {"null": "nothing"}.get(value["type"], value["type"])


if __name__ == "__main__":
    main()
