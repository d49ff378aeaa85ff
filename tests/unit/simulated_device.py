"""A device that is not the host: torch tensors that refuse to meet the host's, so that mixing shows without a GPU.

with Simulated():
    anisotropy(remote(X))
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

DEVICE = torch.device("cuda", 0)
REAL = [
    "cpu",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device"),
    ),
]


class Remote(torch.Tensor):
    """A tensor of the host that says it is of the device, and behaves as such."""

    @property
    def device(self) -> torch.device:
        return DEVICE

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (torch.Tensor.numpy, torch.Tensor.__array__):
            raise TypeError(f"a tensor of {DEVICE} must be brought to the host first")
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if any(
            tensor.ndim for tensor in tensors if not isinstance(tensor, Remote)
        ):  # numbers are taken along
            raise RuntimeError(f"{func.__name__}: a tensor of the host among those of {DEVICE}")
        result = super().__torch_function__(func, types, args, kwargs)
        if func is not torch.Tensor.to or args[1:2] != ("cpu",):
            return result
        with torch._C.DisableTorchFunctionSubclass():
            return result.as_subclass(torch.Tensor)


class Simulated(TorchFunctionMode):
    """Inside it, what torch is asked to make on the device is there."""

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if kwargs.get("device") != DEVICE:
            return func(*args, **kwargs)
        return func(*args, **kwargs | {"device": "cpu"}).as_subclass(Remote)


def remote(array: Any) -> Remote:
    """An array of the host as a tensor of the simulated device."""
    return torch.as_tensor(array).as_subclass(Remote)
