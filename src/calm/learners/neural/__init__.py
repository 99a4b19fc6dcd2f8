"""The pieces that the neural learners are composed of.

recurrence   an LSTM layer of n experts: at once on a GPU
one_by_one   and one by one on a CPU, several threads side by side
cell         what an LSTM does there between two products
dots         and its products in bfloat16, where the processor has an instruction for them
bank         n two-layer LSTMs
combination  the experts' outputs become one prediction: a product or a mixture
slope        what fits a product's weights to a batch, where the vocabulary is large
gates        where the experts' weights come from
online       the training schedule: what happens on every batch
dropout      masks that follow from the seed and the step
"""
