"""How sure differences are between values of the same batches, taken batch by batch.

Places (layers, or training steps) are measured on the same tokens, so their errors move together. Within a batch they
are subtracted before anything is averaged: whatever they have in common is gone, and no correlation need be known.
Batches are independent; that their differences scatter normally is all that Student's t assumes.

Arrays are (..., batches) or (..., places, batches), of two batches or more; what leads stays.
"""

import numpy as np
from scipy.special import stdtr, stdtrit


def standard_error(values: np.ndarray) -> np.ndarray:
    """Of the mean over batches (..., batches)."""
    return values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])


def interval(values: np.ndarray, missed: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the true mean over batches (..., batches), which miss it in that share of repetitions."""
    mean = values.mean(axis=-1)
    reach = stdtrit(values.shape[-1] - 1, 1 - missed / 2) * standard_error(values)
    return mean - reach, mean + reach


def chance_above(values: np.ndarray) -> np.ndarray:
    """How often, at most, batches (..., batches) of a true mean of zero or less have a mean so surely above zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = values.mean(axis=-1) / standard_error(values)
    return stdtr(values.shape[-1] - 1, -np.nan_to_num(t, nan=-np.inf, posinf=np.inf, neginf=-np.inf))


def may_be_highest(values: np.ndarray, missed: float) -> np.ndarray:
    """Which places (..., places, batches) may have the highest true mean: (..., places) of bool.

    Left out are places that another exceeds by more than noise would in a share of missed / (places - 1) of
    repetitions. As many others could so push out the true highest, so it is left out in a share of `missed` at most;
    the observed highest never is.
    Source: multiple comparisons with the best (Hsu 1984), with Bonferroni's bound in place of known correlations.
    """
    places, batches = values.shape[-2:]
    reach = stdtrit(batches - 1, 1 - missed / max(places - 1, 1))
    exceeding = values[..., None, :, :] - values[..., :, None, :]  # (..., places, by others, batches)
    return (exceeding.mean(axis=-1) <= reach * standard_error(exceeding)).all(axis=-1)


def chance_of_peak(values: np.ndarray) -> np.ndarray:
    """How often, at most, places (..., places, batches) without a peak would so surely seem to have one.

    A peak is a place higher than the first and than the last. A given place is none if it fails to exceed one of the
    two, and noise lifts it above that one as rarely as the less sure of both differences says. Any place between may
    look like the peak, so the chance of the surest is as many times as large.
    Source: intersection-union tests (Berger 1982), with Bonferroni's bound.
    """
    between = values[..., 1:-1, :]
    ends = (values[..., :1, :], values[..., -1:, :])
    chances = np.maximum(*(chance_above(between - end) for end in ends))  # (..., places - 2)
    return np.minimum(1, chances.shape[-1] * chances.min(axis=-1))
