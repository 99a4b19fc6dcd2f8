"""Observers as users write them, for tests that name them as `user_observers:Class`."""

import signal

from calm import Observer


class Notes(Observer):
    """Keeps all it is told, and spoils what it can."""

    def __init__(self):
        self.starts, self.records, self.results = [], [], []

    def start(self, config, folder, step):
        self.starts.append((config["seed"], folder, step))
        config.clear()

    def batch(self, record):
        print("not a result")
        self.records.append(record)

    def finish(self, result):
        self.results.append(result)


class Stops(Notes):
    """Presses Ctrl-C at a batch."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def batch(self, record):
        super().batch(record)
        if record.step == self.at:
            signal.raise_signal(signal.SIGINT)


class Raises(Notes):
    """Has had enough at batch 5."""

    def batch(self, record):
        super().batch(record)
        if record.step == 5:
            raise ZeroDivisionError("five")


class Unreachable(Notes):
    """Raises at once."""

    def start(self, config, folder, step):
        raise ConnectionError("nobody there")


class Half(Observer):
    """Misses what it needs."""

    def start(self, config, folder, step):
        pass
