"""A small study through profiles/slurm, with a node that dies on the way, ends with the tables of a local run."""

import lab
import small_study


def test_a_study_on_a_cluster_whose_node_dies_ends_with_the_tables_of_a_local_run(slurm, study, undisturbed):
    said = small_study.finish(study.process, study.folder)
    assert lab.finished(slurm)[study.victim]["JobState"] == "NODE_FAIL"
    assert f"SLURM-job '{study.victim}' failed due to a node failure" in said
    small_study.assert_same(small_study.tables(study.folder), undisturbed)


def test_every_job_of_a_group_is_measured(study):
    small_study.finish(study.process, study.folder)
    scores = small_study.tables(study.folder)["retrieval"]
    measured = list((study.folder / "results/small/benchmarks/retrieve").rglob("*.tsv"))
    assert len(measured) == scores.select("checkpoint", "ablation", "seed").n_unique() > 1
