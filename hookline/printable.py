"""Make text safe to print, because names and messages may come from untrusted files."""

from __future__ import annotations

from hookline.secrets import mask_text


def printable(text: object) -> str:
    """Return a text for a terminal or a log, with secrets masked and its lines kept.

    Control characters are escaped: they could move the cursor, change the title or hide text.
    """
    return "\n".join(escaped(line) for line in mask_text(str(text)).split("\n"))


def escaped(text: str) -> str:
    """Return a text in one line, with its control characters escaped."""
    if text.isprintable():
        return text
    characters = []
    for character in text:
        if not character.isprintable() and character != "\t":
            character = character.encode("unicode_escape").decode()
        characters.append(character)
    return "".join(characters)
