"""What turns inputs into log-probabilities, and learns.

`LEARNERS` maps names to classes, written as `module:Class` so that only the chosen one's libraries
are imported.
"""

LEARNERS = {
    "uniform": "calm.learners.simple:Uniform",
    "unigram": "calm.learners.simple:Unigram",
    "lstm": "calm.learners.lstm:LSTM",
    "floor": "calm.learners.floor:Floor",
    "floor-known": "calm.learners.floor:FloorKnown",
}
