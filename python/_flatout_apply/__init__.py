"""What changes a program that `flatout run --apply`, `--auto` or `flatout tune` runs. Observing is the probe's (`_flatout_probe`).

begin      called by the probe, if the user asked for a change
settings   `--apply`: the settings, `known` by flatout-vocabulary
apply, accumulate, malloc, model   how each is put in force
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
observe, randomness, walk, window, available   what it must know first
trials/*   what a trial of `flatout tune` does
"""
