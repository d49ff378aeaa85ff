"""Vectors of tokens at every layer, and their geometry.

Reads <results>/models/{suite}/{size}/{checkpoint} and <results>/token_ids/{tokenizer}.npz.
Writes <results>/hidden_states/{suite}/{size}/{checkpoint} (temporary: a sample of token vectors for all layers),
<results>/anisotropy/{suite}/{size}/{checkpoint}.parquet and <results>/intrinsic_dimension/{suite}/{size}/{checkpoint}.parquet.
"""


def hidden_states_setting(name):
    """One setting of the study's `hidden_states` section; None in a study without one."""
    return STUDY.hidden_states and getattr(STUDY.hidden_states, name)


rule hidden_states:
    input:
        model=model_folder,
        token_ids=lambda wildcards: f"<results>/token_ids/{suite_of(wildcards).tokenizer}.npz",
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
        mem_mb=lambda wildcards, attempt: int((2500 + 12 * model_parameters(wildcards)) * attempt),
        runtime=more(120),
        gpu=1,
    params:
        within=within,
        architecture=lambda wildcards: suite_of(wildcards).architecture,
        settings=STUDY.hidden_states and STUDY.hidden_states.model_dump(exclude={"models"}),
        code=code("hidden_states"),
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
        mem_mb=more(3000),
        runtime=more(60),
    params:
        columns=model_columns,
        batch_size=hidden_states_setting("batch_size"),
        code=code("measure_anisotropy"),
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
        mem_mb=more(3000),
        runtime=more(120),
    params:
        columns=model_columns,
        batch_size=hidden_states_setting("batch_size"),
        settings=STUDY.intrinsic_dimension.model_dump(),
        code=code("estimate_intrinsic_dimension"),
    script:
        "../../scripts/estimate_intrinsic_dimension.py"
