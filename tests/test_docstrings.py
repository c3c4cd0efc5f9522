"""The parts of docstrings."""

from __future__ import annotations

from hookline.docstrings import argument_docs, inherited_argument_docs, summary_of


class Base:
    """A base.

    Args:
        size: The size.
        kind (str): The kind,
            on two lines: really.

    Attributes:
        other: Not an argument.
    """


class Derived(Base):
    """A class whose first paragraph
    has two lines.

    More.

    Args:
        size: Another size.

    Raises:
        ValueError: Never.
    """


class Silent(Base):
    pass


def test_the_summary_is_the_first_paragraph():
    assert summary_of(Derived) == "A class whose first paragraph has two lines."
    assert summary_of(lambda: None) == ""


def test_arguments_have_their_meaning_on_one_line():
    assert argument_docs(Base) == {"size": "The size.", "kind": "The kind, on two lines: really."}


def test_a_class_inherits_the_meanings_of_its_bases():
    assert inherited_argument_docs(Derived)["size"] == "Another size."
    assert inherited_argument_docs(Derived)["kind"].startswith("The kind")
    assert inherited_argument_docs(Silent) == argument_docs(Base)
