# Runs inside the program, at a safe point of its main thread. What it says is a file: the program's own output is not ours.
def _flatout(here, rings, answer, wanted, takes_out):
    import json
    import os
    import sys

    try:
        os.unlink(wanted)
    except OSError:
        # Too late: nobody waits for it.
        return

    def hooks():
        return [finder for finder in sys.meta_path if type(finder).__name__ == "Hook" and hasattr(finder, "find_probe")]

    why = None
    try:
        if takes_out:
            from _flatout_probe import late

            late.out()
            for hook in hooks():
                sys.meta_path.remove(hook)
        else:
            if not hooks():
                source = os.path.join(here, "_flatout_probe", "hook.py")
                scope = {"__name__": "_flatout_probe.hook", "__file__": source}
                with open(source, "rb") as file:
                    exec(compile(file.read(), "<flatout>", "exec"), scope)
                sys.meta_path.insert(0, scope["Hook"](here))
            from _flatout_probe import late

            why = late.put(rings)
    except Exception as error:
        why = "%s: %s" % (type(error).__name__, error)
    try:
        with open(answer + ".new", "w", encoding="utf-8") as file:
            json.dump({"why": why}, file)
        os.rename(answer + ".new", answer)
    except OSError:
        pass


_flatout(*ARGUMENTS)  # noqa: F821 (filled in when it is written)
del _flatout
