"""The settings of intrinsic dimension that have names, and those that are usual.

Apart from the estimators (`lmshape.intrinsic_dimension`), because every cluster job reads the study: light imports.
"""

FACCO = 0.9  # share of the smallest ratios that Facco et al. and scikit-dimension fit
LLM_MICROSCOPE = 0.2  # share that the package of the authors of "The shape of learning" fits
FRACTIONS = {"facco": FACCO, "llm-microscope": LLM_MICROSCOPE}

# neighbours that each estimator looks at: scikit-dimension's choice
MADA, MOM = 20, 100
NEIGHBORS = {"twonn": 2, "mada": MADA, "mom": MOM}
