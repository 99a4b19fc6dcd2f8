"""Family trees of languages, written in Newick notation: `((a:1,b:1):2,c:3);`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calm.errors import CalmError

FIVE_IN_THREE_BRANCHES = "((alba:0.5,alma:0.5):1,(beru:0.5,besa:0.5):1,coro:1.5);"


@dataclass(frozen=True)
class Node:
    """A language or an ancestor of some, and the length of the branch that leads to it."""

    name: str
    length: float
    children: tuple["Node", ...]

    def leaves(self) -> Iterator["Node"]:
        """Yield the languages below, left to right."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


def parse(newick: str) -> Node:
    """Read a tree; every leaf needs a name of its own, lengths default to 1, the root's to 0."""
    tokens: list[str] = re.findall(r"[(),;:]|[^(),;:\s]+", newick)
    fault = CalmError(f"the tree {newick!r} is not in Newick notation, such as ((a:1,b:1):2,c:3);")

    def take() -> str:
        if not tokens:
            raise fault
        return tokens.pop(0)

    def node(length: float = 1.0) -> Node:
        children: list[Node] = []
        if tokens and tokens[0] == "(":
            take()
            children.append(node())
            while tokens and tokens[0] == ",":
                take()
                children.append(node())
            if take() != ")":
                raise fault
        name = take() if tokens and tokens[0] not in "(),;:" else ""
        if tokens and tokens[0] == ":":
            take()
            try:
                length = float(take())
            except ValueError:
                raise fault from None
        if not (children or name) or not 0 <= length < 1e6:
            raise fault
        return Node(name, length, tuple(children))

    root = node(length=0.0)
    names = [leaf.name for leaf in root.leaves()]
    if tokens not in ([], [";"]) or len(set(names)) < len(names):
        raise fault
    return root


def distances(root: Node) -> NDArray[np.float64]:
    """Length of the path between every two leaves, shape (leaves, leaves)."""
    count = sum(1 for _ in root.leaves())
    matrix = np.zeros((count, count))

    def split(node: Node, first: int) -> int:
        """Add the branches below a node, whose leaves begin at `first`; return where they end."""
        last = first if node.children else first + 1
        for child in node.children:
            start, last = last, split(child, last)
            inside = np.zeros(count, dtype=bool)
            inside[start:last] = True
            matrix[np.not_equal.outer(inside, inside)] += child.length
        return last

    split(root, 0)
    return matrix
