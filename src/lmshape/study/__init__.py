"""What a study is: typed configuration, suites, and the grid of combinations.

Light imports only: the Snakefile reads it.
"""
