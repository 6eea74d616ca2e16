"""What a trial of `flatout tune` does to the program: it measures steps, tries some of other sizes, and ends it.

trial      the steps that are timed, and the stages after them
overlay    the files of a trial; `saved` for what opens them below Python
batches    other batches than the program's own
sizes, making, feeding, supply, variants   the stages
own_loader loaders of our own over the program's data
"""
