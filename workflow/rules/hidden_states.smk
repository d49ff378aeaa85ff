"""Vectors of tokens at every layer, and their geometry.

Reads <results>/models/{suite}/{size}/{checkpoint} and <results>/token_ids/{tokenizer}.npz.
Writes <results>/hidden_states/{suite}/{size}/{checkpoint} (temporary: a sample of token vectors for all layers),
<results>/anisotropy/{suite}/{size}/{checkpoint}.parquet and <results>/intrinsic_dimension/{suite}/{size}/{checkpoint}.parquet.
"""

from lmshape.jobs.memory import distances_mb


def host_memory(wildcards, attempt):
    """MB for a job that runs a model: its weights once, in the precision that they are run in, and some room.

    transformers maps the file of a checkpoint and holds only what it converts. A model that fits a GPU needs far less;
    of one that does not, the host holds the rest.
    """
    bytes_each = 4 if STUDY.hidden_states.dtype == "float32" else 2
    return int((2500 + 1.2 * bytes_each * model_parameters(wildcards)) * attempt)


def running_time(wildcards, attempt):
    """Minutes to load a model, from a slow disk if need be, and to run it, in part from the host's memory if need be."""
    return int((60 + model_parameters(wildcards) / 50) * attempt)


def measuring_memory(wildcards, threads, attempt):
    """MB for a measure: for each thread the vectors of one layer, with some of their file, one batch in float64 ten
    times and the distances of its vectors.
    """
    settings = STUDY.hidden_states
    batch = settings.batch_size * size_of(wildcards).width / 1e6
    layer = (5 * settings.batches + 80) * batch + distances_mb(1.1 * settings.batch_size)
    return int((1300 + threads * layer) * attempt)


def measuring_time(wildcards, attempt):
    """Minutes for a measure on all layers, three times what one core took: 5 s a batch of 4096 x 5120."""
    settings, size = STUDY.hidden_states, size_of(wildcards)
    seconds = 5 * (settings.batch_size / 4096) ** 2 * size.width / 5120
    batches = 2 * (size.layers + 1) * settings.batches  # with and without first positions
    return int((30 + 3 * batches * seconds / 60) * attempt)


rule hidden_states:
    input:
        model=model_folder,
        token_ids=lambda wildcards: f"<results>/token_ids/{suite_of(wildcards).tokenizer}.npz",
        compared=tokenizer_comparison,
    output:
        temp(directory("<results>/hidden_states/{suite}/{size}/{checkpoint}")),
    log:
        "<logs>/hidden_states/{suite}/{size}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/hidden_states/{suite}/{size}/{checkpoint}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=host_memory,
        runtime=running_time,
        gpu=1,
    params:
        within=within,
        settings=STUDY.hidden_states and STUDY.hidden_states.model_dump(exclude={"models"}),
    script:
        "../../scripts/hidden_states.py"


rule measure_anisotropy:
    input:
        "<results>/hidden_states/{suite}/{size}/{checkpoint}",
    output:
        "<results>/anisotropy/{suite}/{size}/{checkpoint}.parquet",
    log:
        "<logs>/measure_anisotropy/{suite}/{size}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/measure_anisotropy/{suite}/{size}/{checkpoint}.tsv"
    conda:
        "../../envs/measures.yaml"
    threads: 1
    resources:
        mem_mb=measuring_memory,
        runtime=measuring_time,
    params:
        columns=model_columns,
    script:
        "../../scripts/measure_anisotropy.py"


rule estimate_intrinsic_dimension:
    input:
        "<results>/hidden_states/{suite}/{size}/{checkpoint}",
    output:
        "<results>/intrinsic_dimension/{suite}/{size}/{checkpoint}.parquet",
    log:
        "<logs>/estimate_intrinsic_dimension/{suite}/{size}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/estimate_intrinsic_dimension/{suite}/{size}/{checkpoint}.tsv"
    conda:
        "../../envs/measures.yaml"
    threads: 1
    resources:
        mem_mb=measuring_memory,
        runtime=measuring_time,
    params:
        columns=model_columns,
        functions=[f"intrinsic_dimension.{name}" for name in STUDY.intrinsic_dimension.estimators],
        neighbors=STUDY.intrinsic_dimension.looked_at,
        fractions=STUDY.intrinsic_dimension.fractions,
    script:
        "../../scripts/estimate_intrinsic_dimension.py"
