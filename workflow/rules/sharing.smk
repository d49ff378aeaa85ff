"""Outputs that workflows share are found by what they were made of (lineage.smk). Included after all other rules.

Snakemake would hash the same once more, and cannot in the jobs of a cluster, which know nothing of the jobs before them.
"""

from snakemake.caching.hash import ProvenanceHashMap


async def get_provenance_hash(self, job):
    return job.params.made_of


ProvenanceHashMap.get_provenance_hash = get_provenance_hash

# Snakemake refuses a rule with both `cache` and `benchmark`: an output that came from the cache took no time.
for shared in workflow.rules if SHARED else ():
    if shared.cache.output:
        shared._benchmark = None
