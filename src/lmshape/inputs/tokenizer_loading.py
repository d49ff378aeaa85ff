"""Tokenizers as transformers reads them: always the same tokens for a text, or one message that says why not.

A folder can hold settings that suit training, or one application, and would change counts without a word. They are
set aside here, once for all that tokenize.
"""

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from lmshape.errors import LmshapeError, in_short, reported_as
from lmshape.inputs import json_files, model_files, own_code, tokenizer_files

log = logging.getLogger(__name__)

SETTINGS = "tokenizer_config.json"
LOOKED_AT = 2000  # tokens of a vocabulary, to see whether its tokenizer knows them


class TokenizerError(LmshapeError):
    """A tokenizer that cannot be loaded or does not know its own words; the message names its folder or file."""


class Word(NamedTuple):
    """A token that is a whole word or a part of one, in letters and digits."""

    id: int
    text: str


def load_tokenizer(path: str | Path) -> Any:
    """The transformers tokenizer in a folder, or in a GGUF file or the one GGUF model of a folder.

    Texts that are too long are cut at their end; dropout and sampling, by which one text has other tokens each time,
    are off. No code that comes with a tokenizer is run, and nothing is downloaded. Raises TokenizerError, also where
    the vocabulary is missing in whole or in large part: transformers then makes do with [UNK] or single letters.
    """
    from transformers import AutoTokenizer  # 3 s, and no job that scores a table needs it

    path = Path(path)
    if not path.exists():  # transformers would ask the hub
        raise TokenizerError(f"{path}: no such file or folder")
    if path.is_dir():
        path = model_files.gguf_model(path) or path
    folder, options = (path, _overridden(path)) if path.is_dir() else (path.parent, {"gguf_file": path.name})
    advice = tokenizer_files.lacking(os.listdir(path)) if folder == path else ""
    if folder == path and not advice and not (path / SETTINGS).exists():
        advice = "a folder without a tokenizer_config.json needs one, which names the class of its tokenizer"
    try:
        with reported_as(TokenizerError, f"{path}: transformers cannot load a tokenizer from here", advice):
            tokenizer = AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True, **options
            )
    except TokenizerError:
        if folder == path:
            _refuse_damaged(folder)  # where a file is to blame, the message is about that file
        raise
    _as_counted(tokenizer, path)
    _require_knowledge(tokenizer, path)
    _warn_of_contradiction(tokenizer, folder)
    return tokenizer


def copy_tokenizer(model: str | Path, folder: Path) -> None:
    """Make `folder` that of the tokenizer of a model: its files as they are, or what a GGUF file says in theirs.

    Raises as `load_tokenizer` does. transformers' own `save_pretrained` would not do for a folder: what it writes
    can be read as a tokenizer that frames texts otherwise.
    """
    tokenizer, names = load_tokenizer(model), os.listdir(model)
    if not (files := tokenizer_files.among(names)):
        tokenizer.save_pretrained(folder)
        return
    folder.mkdir()
    if model_files.CONFIGURATION in names:  # says what class a tokenizer is where nothing else does
        files.append(model_files.CONFIGURATION)
    for name in files:
        shutil.copyfile(Path(model, name), folder / name)


def known_words(tokenizer: Any) -> list[Word]:
    """Words, or their beginnings, from all over a vocabulary, in the order of their ids."""
    added = tokenizer.added_tokens_decoder
    ids = sorted(id for id in tokenizer.get_vocab().values() if id not in added)
    chosen = ids[:: max(1, len(ids) // LOOKED_AT)]
    with reported_as(TokenizerError, f"{tokenizer.name_or_path}: the tokenizer cannot write its own tokens"):
        words = [Word(id, tokenizer.decode([id]).strip()) for id in chosen]
    return [word for word in words if word.text.isalnum()]


def unknown_ids(tokenizer: Any) -> set[int]:
    """The ids of what stands for characters that are not in the vocabulary; none where there is nothing such."""
    model = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    found = {tokenizer.unk_token_id, tokenizer.get_vocab().get(getattr(model, "unk_token", None))}
    return found - {None}


# --- what is set aside ---------------------------------------------------------------------------------


def _overridden(folder: Path) -> dict[str, Any]:
    """Arguments in place of a folder's settings. Raises TokenizerError where these ask for code of its own."""
    settings = _settings(folder)
    advice = "save it as a tokenizer.json, or name the tokenizer of a suite that has the same tokens"
    own_code.refuse(settings, "AutoTokenizer", folder / SETTINGS, TokenizerError, advice)
    sampling = settings.get("sp_model_kwargs")
    if isinstance(sampling, dict) and sampling.get("enable_sampling"):
        log.info("%s: SentencePiece's sampling is switched off: a text has the same tokens each time", folder)
        return {"sp_model_kwargs": sampling | {"enable_sampling": False}}
    return {}


def _settings(folder: Path) -> dict[str, Any]:
    """What tokenizer_config.json says, {} if there is none. Raises JsonFileError, which names a link's own file."""
    path = os.path.realpath(folder / SETTINGS)
    if not os.path.exists(path):
        return {}
    said = json_files.read(path)
    json_files.value(said, "model_max_length", float, path)
    return said


def _as_counted(tokenizer: Any, path: Path) -> None:
    """Set a tokenizer to cut texts at their end, and to give a text the same tokens each time."""
    if getattr(tokenizer, "truncation_side", "right") != "right":
        log.info("%s: cuts texts at their beginning; here they are cut at their end, as all are", path)
        tokenizer.truncation_side = "right"
    model = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    if getattr(model, "dropout", None):
        log.info("%s: dropout %g is switched off: a text has the same tokens each time", path, model.dropout)
        model.dropout = None


# --- what is refused -----------------------------------------------------------------------------------


def _refuse_damaged(folder: Path) -> None:
    """Raise TokenizerError, or JsonFileError, for a file that is not what its name says, or of another version."""
    import sentencepiece
    import tokenizers

    names = os.listdir(folder)
    for name in [*tokenizer_files.among(names), *({model_files.CONFIGURATION} & set(names))]:
        path = Path(os.path.realpath(folder / name))  # a link's own file is the one to mend
        if path.suffix == ".json":
            json_files.read(path)
        if path.suffix in (".model", ".spm"):
            advice = "fetch it again; one of tiktoken's takes the package tiktoken to be read"
            with reported_as(TokenizerError, f"{path}: not a SentencePiece model", advice):
                sentencepiece.SentencePieceProcessor(str(path))
        if name == "tokenizer.json":
            what = f"{path}: tokenizers {tokenizers.__version__} cannot read it"
            advice = "a newer version may have written it: save it with this one"
            with reported_as(TokenizerError, what, advice):
                tokenizers.Tokenizer.from_file(str(path))


def _require_knowledge(tokenizer: Any, path: Path) -> None:
    """Raise TokenizerError unless most words of a vocabulary come out as tokens, and as the same ones each time."""
    words = known_words(tokenizer)
    if not words:
        lacking = tokenizer_files.lacking(os.listdir(path)) if path.is_dir() else ""
        said = f"{path}: the tokenizer has no vocabulary beyond its special tokens"
        raise TokenizerError("; ".join(filter(None, (said, lacking))))
    texts, unknown = [word.text for word in words], unknown_ids(tokenizer)
    with reported_as(TokenizerError, f"{path}: the tokenizer cannot read the words of its own vocabulary"):
        together, inside = (
            tokenizer(given, add_special_tokens=False, verbose=False)["input_ids"]
            for given in (texts, [f" {text}" for text in texts])
        )
        alone = [tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] for text in texts]
    if alone != together:
        differing = next(i for i, ids in enumerate(alone) if ids != together[i])
        raise TokenizerError(f"{path}: the tokenizer gives {texts[differing]!r} other tokens each time")
    tokens = sum(
        any(word.id in ids or (len(ids) == 1 and ids[0] not in unknown) for ids in both)
        for word, *both in zip(words, together, inside, strict=True)
    )
    if 2 * tokens < len(words):
        lost = next(word.text for word, ids in zip(words, together, strict=True) if word.id not in ids)
        raise TokenizerError(
            f"{path}: the tokenizer does not know its own vocabulary: of {len(words)} words in it, {tokens} come out "
            f"as tokens, and {lost!r} as {tokenizer.tokenize(lost)}; a vocabulary file or its merges are missing"
        )


def _warn_of_contradiction(tokenizer: Any, folder: Path) -> None:
    """Log a vocabulary file beside tokenizer.json that numbers tokens otherwise: transformers reads the latter."""
    read = tokenizer.get_vocab()
    for name in ("vocab.json", "vocab.txt"):
        path = folder / name
        if not (path.is_file() and (folder / "tokenizer.json").is_file()):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            listed = json.loads(text) if path.suffix == ".json" else _numbered(text)
            differing = [token for token, id in listed.items() if read.get(token, id) != id]
        except (ValueError, AttributeError) as error:
            log.warning("%s: unreadable (%s); tokenizer.json beside it is read", path, in_short(error))
            continue
        if differing:
            log.warning(
                "%s: %d of its %d tokens, the first %r, have other ids in tokenizer.json beside it, which is read",
                path, len(differing), len(listed), differing[0],
            )  # fmt: skip


def _numbered(text: str) -> dict[str, int]:
    return {token: number for number, token in enumerate(text.split("\n"))}
