"""Which figures a study has: their order, titles and captions.

Light on purpose (no polars, matplotlib or seaborn): the workflow reads the names while it is parsed. The rows
behind a figure are chosen by the function of its name in `lmshape.report.figure_data`, and drawn by the one in
`lmshape.report.figures`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmshape.report import figure_needs as needs
from lmshape.report.figure_needs import Need

if TYPE_CHECKING:  # how jobs are planned makes no figure stale
    from lmshape.study.config import Study
    from lmshape.study.grid import Grid


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure: the table it reads, what else it needs of a study, the question it answers and its words.

    `choices` are what its functions take of the study beside the table, as keyword arguments. `caption` may hold the
    fields that `lmshape.report.figure_data.facts` fills in from the plotted rows, as {queries}.
    """

    table: str
    needs: Need = Need("")  # nothing
    question: str
    title: str
    caption: str
    choices: Callable[[Study], dict[str, Any]] = lambda study: {}


def _fraction(study: Study) -> dict[str, Any]:
    return {"fraction": study.intrinsic_dimension.drawn_fraction}


@dataclass(frozen=True)
class Question:
    """A part of the report: its heading, and what the numbers in it mean."""

    heading: str
    meaning: str


QUESTIONS: dict[str, Question] = {
    "scale": Question(
        "Across sizes: what does a wider embedding table hold?",
        "A text becomes the mean of its tokens' rows in a model's embedding table; no layer of the model runs. "
        "Texts are ranked by cosine. nDCG@10 is 1 when the ten texts ranked first are the most relevant ones in the "
        "best order, and 0 when none of them is relevant.",
    ),
    "layers": Question(
        "Across layers: what shape do hidden states have?",
        "Layer 0 is what enters the first block; layer i is what leaves block i. Anisotropy is the share of a "
        "layer's variance that lies along its strongest direction: 1 for vectors on a line, 1/d for a ball in d "
        "dimensions. Intrinsic dimension is the number of directions in which a layer's vectors vary locally, "
        "estimated from the distances to their nearest neighbours.",
    ),
    "training": Question(
        "Across training: when does the shape appear?",
        "The same measures at successive checkpoints of one training run. Steps are on a log axis; step 0, the "
        "initialisation, stands left of the break in the axis.",
    ),
    "cost": Question(
        "Where time and memory went",
        "What each job of the study took when it last ran, on whatever machine that was. Time is by the clock. "
        "Memory is the most that a job's processes were seen to hold, in samples taken every half second at first "
        "and every half minute later: a lower bound, and nothing for jobs of less than a second. A GPU's own memory "
        "is not in it.",
    ),
}


@dataclass(frozen=True)
class Summary:
    """A table short enough to be printed in its part of the report, and the words above it.

    `columns` are those in print, fewer than the table has: heading -> pattern of `lmshape.report.printing.write`.
    """

    question: str
    title: str
    meaning: str
    columns: Mapping[str, str]


SUMMARIES: dict[str, Summary] = {
    "published": Summary(
        "scale",
        "What a published study printed, beside what was measured here",
        "nDCG@10 in hundredths. Agrees: within the tolerance, which is what the same steps elsewhere may move (two "
        "neighbours of one query change places). Suspect: the note says what in the study itself speaks against the "
        "number.",
        {
            "number": "{quantity}",
            "published": "{published}",
            "measured": "{measured}",
            "difference": "{difference}",
            "tolerance": "{tolerance:.3f}",
            "status": "{status}",
            "precision": "{precision}",
            "note": "{note}",
            "not measured": "{reason}",
            "source": "{source}",
        },
    ),
    "anisotropy_bells": Summary(
        "layers",
        "How bell-shaped each profile is",
        "Mean anisotropy in the middle third of the layers, at the ends, and the difference (contrast); peak depth "
        "is where the highest layer lies, 0 (first) to 1 (last). The range of a contrast holds the true one in 95 of "
        "100 repetitions with other texts, that of a peak in at least as many. A bell has a contrast whose range is "
        "above zero. Final checkpoints.",
        {
            "model": "{suite} {size} {stack}",
            "positions": "{positions}",
            "middle": "{middle:.3f}",
            "ends": "{ends:.3f}",
            "contrast (range)": "{contrast:.3f} ({contrast_low:.3f} to {contrast_high:.3f})",
            "peak depth (range)": "{peak_depth:.2f} ({peak_low:.2f} to {peak_high:.2f})",
            "no value": "{reason}",
        },
    ),
    "dimension_over_training": Summary(
        "training",
        "Whether and when the dimension rises and falls",
        "Of the intrinsic dimension averaged over the layers with a plain value at every step: the step of its peak, "
        "with the range that holds it in at least 95 of 100 repetitions with other texts; how far it rises to it and "
        "falls from it, with standard errors. Chance is how often, at most, a dimension that only rises, only falls "
        "or does neither would seem to do both as surely: below 0.05, it rises and falls. Repeated steps serve the "
        "weights of another step.",
        {
            "model": "{suite} {size} {stack}",
            "positions": "{positions}",
            "estimator": "{estimator}, {fraction}",
            "layers": "{layers}",
            "peak step (range)": "{peak_step} ({peak_low} to {peak_high})",
            "rise": "{rise} ± {rise_stderr}",
            "fall": "{fall} ± {fall_stderr}",
            "chance": "{chance:.2f}",
            "repeated steps": "{repeated_steps}",
            "no value": "{reason}",
        },
    ),
}

_MEANS = "Lines: mean over {batches} batches of {batch_size} token vectors; no two share a text. "
_DEVIATION = "Bands: one standard deviation over batches on each side."
_DEVIATION_OF_SHARE = _DEVIATION[:-1] + ", also where that is beyond 0 or 1."
_AVERAGE = "average over the {layers} layers with a value at every step, if these are half of them or more. "
_LAYER_ERROR = "Bars: one standard error of the average on each side."

FIGURES: dict[str, Figure] = {
    "retrieval_by_width": Figure(
        table="retrieval",
        needs=needs.RETRIEVAL,
        question="scale",
        title="Retrieval with each suite's embedding tables, by width",
        caption="A panel per suite; a point per model, at the width of its stored table; final checkpoints. "
        "original: the table as it is; crop-N: its first N columns; pad-N: random columns added up to N; random: "
        "every entry redrawn. Points: nDCG@10 over {queries} queries, averaged over seeds where the ablation draws "
        "numbers ({seeds} a point). Thin bars: one standard error over queries on each side. Wide pale bars: "
        "lowest to highest seed.",
    ),
    "retrieval_all_suites": Figure(
        table="retrieval",
        needs=needs.ORIGINALS,
        question="scale",
        title="Retrieval with the original embedding tables, all suites together",
        caption="A line per suite; a point per model; the tables as they are, at final checkpoints. Points: nDCG@10 "
        "over {queries} queries. Bars: one standard error over queries on each side.",
    ),
    "comparisons": Figure(
        table="comparisons",
        needs=needs.COMPARISONS,
        question="scale",
        title="Is the larger model's embedding table the better one?",
        caption="A panel per suite, a cell per pair of its sizes; the tables as they are, at final checkpoints. "
        "Colour: the share of resamples of the {queries} queries in which the larger model's mean nDCG@10 is higher; "
        "blue: nearly all; orange: nearly none; grey: half. Numbers: by how much it is higher, in hundredths. "
        "Each pair is looked at by itself: of twenty, two beyond 0.05 or 0.95 may be chance.",
    ),
    "random_baseline": Figure(
        table="random_baseline",
        needs=needs.RANDOM_BASELINE,
        question="scale",
        title="What a random table scores, by tokenizer",
        caption="Tables of Xavier-normal numbers with one row for each entry of the vocabulary: only the tokenizer "
        "and the width differ. Lines: nDCG@10 averaged over {seeds} seeds. Bands: lowest to highest seed.",
    ),
    "word_similarity": Figure(
        table="word_similarity",
        needs=needs.WORD_SIMILARITY,
        question="scale",
        title="Embedding tables and people's judgements of word similarity",
        caption="A panel per data set, a line per suite, dashed for output embeddings; a point per model, at the "
        "width of its stored table; final checkpoints. Points: Spearman's rank correlation of the cosines of words "
        "with people's judgements, over {pairs} pairs of words. Bars: one standard error on each side.",
    ),
    "anisotropy_by_depth": Figure(
        table="anisotropy",
        needs=needs.HIDDEN_STATES,
        question="layers",
        title="Anisotropy along the depth of encoders and decoders",
        caption="A line per model, final checkpoints; depth is a layer's number over that of the last. Top: all "
        "token positions. Bottom: without each sequence's first token; what is lost from top to bottom is the work "
        "of those tokens alone. Vectors are centred. " + _MEANS + _DEVIATION_OF_SHARE,
    ),
    "largest_norms": Figure(
        table="anisotropy",
        needs=needs.HIDDEN_STATES,
        question="layers",
        title="Share of variance carried by the largest one percent of norms",
        caption="A line per model, final checkpoints, all token positions. Near 1, one vector in a hundred carries "
        "the layer's variance, and its anisotropy tells little about the others; vectors of equal norm would "
        "give 0.01. " + _MEANS + _DEVIATION_OF_SHARE,
    ),
    "anisotropy_measures": Figure(
        table="anisotropy",
        needs=needs.HIDDEN_STATES,
        question="layers",
        title="Two measures of anisotropy, with and without centring",
        caption="The largest model of each suite, final checkpoint, all token positions. Strongest direction: "
        "largest squared singular value over the sum of all. Average cosine: mean over all pairs of vectors. "
        "Centred: the mean vector of the batch subtracted first. " + _MEANS + _DEVIATION,
    ),
    "intrinsic_dimension_by_depth": Figure(
        table="intrinsic_dimension",
        needs=needs.TWONN,
        question="layers",
        title="Intrinsic dimension along the depth of encoders and decoders",
        caption="A line per model, final checkpoints; TwoNN fitted on the smallest {fraction} of the distance "
        "ratios, equal vectors removed. Top: all token positions. Bottom: without each sequence's first token. "
        + _MEANS
        + "Bands: one standard error on each side.{doubts}",
        choices=_fraction,
    ),
    "pretraining_loss": Figure(
        table="pretraining",
        needs=needs.PRETRAINING,
        question="training",
        title="Loss while the small suites are trained",
        caption="A panel per suite, a line per size. Cross-entropy of the training batches in nats per predicted "
        "token. Points: mean over the steps since the point before, at most four points to a doubling. Bands: one "
        "standard deviation over those steps on each side. Decoders predict the next token and encoders the masked "
        "ones, so that levels compare within a panel only.",
    ),
    "retrieval_by_step": Figure(
        table="retrieval",
        needs=needs.RETRIEVAL_OVER_TRAINING,
        question="training",
        title="Retrieval with the embedding table as training proceeds",
        caption="A panel per suite, a line per size; the tables as they are. Points: nDCG@10 over {queries} queries. "
        "Bars: one standard error over queries on each side.{below}",
    ),
    "anisotropy_by_checkpoint": Figure(
        table="anisotropy",
        needs=needs.STATES_OVER_TRAINING,
        question="training",
        title="Anisotropy by layer at successive checkpoints",
        caption="A panel per model, a line per checkpoint, darker as training proceeds. All token positions; vectors "
        "are centred. " + _MEANS,
    ),
    "intrinsic_dimension_by_step": Figure(
        table="intrinsic_dimension",
        needs=needs.TWONN_OVER_TRAINING,
        question="training",
        title="Intrinsic dimension averaged over layers as training proceeds",
        caption="A panel per suite, a line per size. TwoNN fitted on the smallest {fraction} of the distance ratios, "
        "all token positions; " + _AVERAGE + _LAYER_ERROR + " Bands: lowest to highest layer.{doubts}",
        choices=_fraction,
    ),
    "intrinsic_dimension_estimators": Figure(
        table="intrinsic_dimension",
        needs=needs.STATES_OVER_TRAINING,
        question="training",
        title="The same average by different estimators",
        caption="A panel per model, a line per estimator; all token positions; "
        + _AVERAGE
        + "TwoNN is followed by the fraction of the distance ratios it is fitted on; MADA: manifold-adaptive "
        "dimension estimation; MoM: method of moments. " + _LAYER_ERROR + "{doubts}",
    ),
    "cost_by_rule": Figure(
        table="benchmarks",
        question="cost",
        title="Time and memory by rule",
        caption="Bars: the time of all jobs of a rule, added up as if they had run one after another. Points: the "
        "peak memory of the job that took most, on a logarithmic axis.",
    ),
    "cost_by_size": Figure(
        table="benchmarks",
        needs=needs.SIZES,
        question="cost",
        title="Time and memory by model size",
        caption="A line is a rule, a point a model: the mean time of the rule's jobs on it, and the peak memory of "
        "the job that took most. Rules that ran on models of one size only are left out. The axes are logarithmic.",
    ),
}


def drawn(grid: Grid) -> list[str]:
    """The figures for which a study has rows, in their order; what it measured in vain is drawn, to say why."""
    tables = {*grid.tables, "benchmarks"}
    return [name for name, figure in FIGURES.items() if figure.table in tables and figure.needs.met(grid)]
