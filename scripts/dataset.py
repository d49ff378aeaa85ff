"""Make a retrieval data set in BEIR layout: built here, exported from mteb, or copied from a folder."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.inputs import datasets, package_documentation

settings = snakemake.params.dataset
if settings["source"] == "mteb":
    datasets.export_mteb(settings["task"], snakemake.output[0], settings["split"])
elif settings["source"] == "folder":
    read = datasets.read_beir(settings["path"], settings["drop_self"])
    datasets.write(read, snakemake.output[0])
else:
    built = package_documentation.build(settings["packages"], settings["queries"])
    datasets.write(built, snakemake.output[0])
