"""flatout inside trainers: `flatout.integrations.lightning` and `flatout.integrations.transformers`.

Each has a callback that records the fit and, at its end, prints what held it back and adds it to the experiment trackers that the trainer uses.
"""
