"""The probe that `flatout run` puts into a Python program. It measures from inside and never changes what the program does.

hook       waits for `import torch` (imports nothing of weight before)
ring       the memory-mapped file that `flatout run` reads
clock      phases of the training thread, steps, histograms
arithmetic operations per step, from autograd's graph
contents   padding, repeated samples and shapes of the first batches
places     the user's source line behind a call
guard      patches that turn themselves off when they fail
extension  where `_flatout_apply` takes part, if the user asked for a change
patches/*  what is measured, one file per kind
"""
