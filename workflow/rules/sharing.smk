"""Rules whose outputs are shared between workflows are not measured while they are. Included after all other rules.

Snakemake refuses a rule with both `cache` and `benchmark`: an output that came from the cache took no time.
"""

for shared in workflow.rules if SHARED else ():
    if shared.cache.output:
        shared._benchmark = None
