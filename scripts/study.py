"""Write the resolved study, with the suites it uses, and the combinations that were pruned."""

from lmshape.jobs import job

job.start(snakemake)

import csv

import yaml

from lmshape.files import writing

with writing(snakemake.output.study) as path:
    resolved = {"study": snakemake.params.study, "suites": snakemake.params.suites}
    path.write_text(yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True), encoding="utf-8")

with writing(snakemake.output.pruned) as path, path.open("w", newline="", encoding="utf-8") as file:
    rows = csv.writer(file)
    rows.writerow(["combination", "reason"])
    rows.writerows(snakemake.params.pruned)
