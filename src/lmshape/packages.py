"""Models and texts that installed Python packages ship: files alone, the packages are not imported."""

import importlib.metadata
import importlib.util
import shutil
from pathlib import Path

from lmshape import revisions
from lmshape.errors import LmshapeError

MODEL_FILES = ("config.json", "*.safetensors", "tokenizer*", "special_tokens_map.json", "vocab*", "merges.txt")


def file(package: str, path: str) -> Path:
    """A file or folder that an installed package ships."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise LmshapeError(f"package {package} is not installed; `make .venv` installs requirements-data.txt")
    found = Path(spec.origin).parent / path
    if not found.exists():
        raise LmshapeError(f"package {package} ships no {path}; install the version in requirements-data.txt")
    return found


def copy_model(package: str, path: str, folder: Path) -> None:
    """Make `folder` a model folder (configuration, weights, tokenizer, revision.json) of a package's model.

    A folder is copied. A GGUF file is dequantised to float32 by transformers: its values are exactly the file's.
    """
    source = file(package, path)
    folder.mkdir(parents=True)
    if source.is_dir():
        for pattern in MODEL_FILES:
            for found in source.glob(pattern):
                shutil.copy(found, folder)
    else:
        convert_gguf(source, folder)
    distribution = importlib.metadata.packages_distributions()[package][0]
    version = importlib.metadata.version(distribution)
    revisions.write(folder, distribution, version, f"{distribution} {version}")


def convert_gguf(path: Path, folder: Path) -> None:
    """Write the model and the tokenizer of a GGUF file as transformers writes them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)
