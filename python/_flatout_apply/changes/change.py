from _flatout_probe.patches import loader as watched


class Change:
    worth, settle, expected = 1.0, 3, 1.0
    # Seconds that a trial costs even where it gains nothing, and whether `expected` was computed from what was measured.
    cost_s, predicted = 0.0, False
    # Not even tried: it only names its reason.
    is_refused = False
    # Batches are so many times as large with it.
    scale = 1
    # The loss guard looks at it.
    changes_numbers = False
    since = saved_s_per_step = 0
    # The rate before it was kept, as long as it may be doubted; and the change that this one takes back.
    rate_before = undoes = None

    def __init__(self, key, value, expected):
        self.key, self.setting, self.expected = key, "%s=%s" % (key, value), expected

    def put(self):
        raise NotImplementedError

    def back(self):
        pass

    def failed(self):
        return None

    def end(self):
        """The program ends."""


class Without(Change):
    """A change that was kept, taken back for some steps."""

    def __init__(self, change):
        super().__init__(change.key, "without", 1.0)
        self.undoes, self.settle, self.cost_s = change, change.settle, change.cost_s

    def put(self):
        self.undoes.back()
        return None

    def end(self):
        self.undoes.end()


def feeding():
    """The loaders that feed the training, with what is known of each."""
    return [(one, info) for one, info in watched.known() if info.feeds]
