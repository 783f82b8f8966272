"""Pairwise testing: some of many combinations, among which any two values of two factors meet."""

import itertools


def covering_pairs(combinations, values_of=tuple):
    """The combination with the most pairs that are still missing, the first of equals, until no pair is missing of those that
    the combinations have: the same ones in every run. `values_of` one are hashable, a value per factor in the same order."""
    def pairs(combination):
        return set(itertools.combinations(enumerate(values_of(combination)), 2))

    missing, chosen = set().union(*map(pairs, combinations)), []
    while missing:
        chosen.append(max(combinations, key=lambda combination: len(pairs(combination) & missing)))
        missing -= pairs(chosen[-1])
    return chosen
