"""The pieces that the neural learners are composed of.

recurrence   an LSTM layer of n experts at once
bank         n two-layer LSTMs
combination  the experts' outputs become one prediction: a product or a mixture
slope        what fits a product's weights to a batch, where the vocabulary is large
gates        where the experts' weights come from
online       the training schedule: what happens on every batch
dropout      masks that follow from the seed and the step
"""
