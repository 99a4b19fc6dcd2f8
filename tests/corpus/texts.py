"""Text made by a generator, and sets built from it."""

import random
from io import BytesIO

from calm.config import Cleaning
from calm.corpus.builder import build_set
from calm.corpus.documents import Document

KEEP_ALL = Cleaning(rare=1, top=10**6)


def make_text(seed, lines=300, letters="abcdefgh čé"):
    """Lines of random words."""
    draw = random.Random(seed)
    return "".join(
        "".join(draw.choices(letters, k=draw.randrange(5, 60))) + "\n" for _ in range(lines)
    )


def build(target, texts, level="char", cleaning=KEEP_ALL, tell=lambda *_: None):
    """Build a set from {class: text}."""
    documents = [Document(name, name, BytesIO(text.encode())) for name, text in texts.items()]
    return build_set(target, tuple(texts), documents, level, cleaning, tell)
