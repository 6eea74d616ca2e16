"""What changes a program that `flatout run --apply`, `--auto` or `flatout tune` runs. Observing is the probe's (`_flatout_probe`).

same       whether two batches are equal, bit by bit
whole      data sets whose batches can be fetched by one indexing per column
expression reads `__getitem__` methods that only index
batched    `loader.batched`
resident   `loader.resident`
threads    `loader.threads`
padding    `padding.trim`
graph      `step.graph`
auto       `--auto`: watches, tries, measures, keeps or takes back
changes/*  what it can change, one file per kind
control    the loader that feeds the training, and where its batches come from
feed, pool one iterator whose batches come from elsewhere, and the workers they come from
observe, randomness, walk, window   what it must know first
"""
