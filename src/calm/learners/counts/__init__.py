"""A product of count-based experts under plastic weights.

tree      what followed each context, and how often
compact   the tree without gaps: saved, restored, and without what is rare
features  what every expert adds to what shorter contexts say
words     contexts made of words
count     a batch, after its contexts
classes   which class is it: a table of counts for each
rows      what each row last read of every class
belief    within a window: which class, by the inputs alone
predict   the product, position by position
mixer     the experts' weights
levels    what differs between characters and words
learner   all of it, as a learner
"""
