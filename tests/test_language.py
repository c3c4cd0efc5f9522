"""Count words and constructions that our prose avoids; the counts may only fall.

Plain technical English is easier to read: "log" or "report" instead of "tell", a name instead of
"what is …", "continue" instead of "go on". `LIMITS` has today's counts. A new use fails with its
place; after a cleanup, the test asks for lower limits.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.checks import all_failures
from tests.docs.pages import DOCS, ROOT, read, without_code

MAX_COLUMNS = 100
MAX_WORDS_IN_CELL = 15

# Words and constructions to avoid. A space matches any white space, a line break too.
PATTERNS = {
    "tell": r"(tells?|told|telling)(?! apart)",
    "says": r"says?|said",
    "what … as a noun": r"what (is|was|are|were|has|had|the|an?|it|they|each|comes|hooks?|others?)",
    "of its own": r"of (its|their|his|her|one's|your|my) own",
    "of yours": r"of (yours|ours|theirs|mine)",
    "nobody, everyone": r"nobody|everybody|everyone|no one|whoever",
    "anew": r"anew",
    "go on": r"(goes?|going|went|gone) on",
    "lest, reckon": r"lest|reckon(s|ed|ing)?",
    "besides": r"besides",
    "as it is": r"as (it is|they are)",
    "look at": r"(to|may|can) be looked at|for looking at",
    "has to do with": r"(has|have) to do with",
    "that is none": r"that (is|are) none|which is none",
    "whatever": r"whatever (it|they) (is|are)( of)?",
    "inside of": r"(inside|outside) of",
    "by itself": r"there by itself",
    "for … (because)": (
        r"for (it|they|there|this|these|a \w+|the \w+) "
        r"(is|are|was|were|has|have|may|would|must|will|does|cannot)"
    ),
    "have … done": r"(has|have|had) (it|them|a \w+|the \w+) (\w+ed|told|run|read)",
    "is to be": r"(is|are|was|were) to be",
    "has to": r"(has|have|had) to",
    "someone": r"some(one|body)",
    "any more": r"any ?more",
    "take long": r"(takes?|took|taking) (so |too |very )?long",
    "as often as": r"as often as|of all things|twins?",
    "anyone": r"any(one|body)",
    "British spelling": (
        r"(behaviour|colour|honour|favour|centre|licence|normalis|initialis|synchronis|recognis"
        r"|specialis|optimis|serialis|organis|summaris|unrecognis)\w*|misspelt|learnt"
    ),
}

# The number of uses today, in the code of the package and in the documents. Only lower them.
LIMITS: dict[str, dict[str, int]] = {
    "code": {
        "what … as a noun": 0,
        "has to": 4,
        "any more": 1,
        "take long": 1,
        "anyone": 1,
    },
    "documents": {
        "has to": 1,
        "someone": 3,
        "take long": 1,
        "as often as": 1,
        "anyone": 2,
    },
}


# First words of docstrings that describe instead of commanding.
NOT_IMPERATIVE = re.compile(
    r"the|an?|what|whether|how|where|which|who|when|if|in|on|not?|one|this|that|these|its?|all|each"
    r"|every|for|with|as|of|to|from|by|is|are|there",
    re.IGNORECASE,
)
THIRD_PERSON = re.compile(
    r"Adds|Appends|Builds|Calls|Captures|Collects|Computes|Converts|Counts|Distinguishes|Draws|Finds"
    r"|Handles|Hands|Holds|Keeps|Loads|Locates|Logs|Makes|Measures|Passes|Predicts|Reads|Receives"
    r"|Records|Returns|Runs|Saves|Sends|Shows|Starts|Stores|Takes|Trains|Turns|Wraps|Writes"
)
# Functions whose docstrings have another form: the moments of a run.
SITES = "hookline/engine/sites.py"


class Place(NamedTuple):
    """A line of a file."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


class Text(NamedTuple):
    """A piece of prose and the line where it begins."""

    path: Path
    line: int
    content: str


def code_texts() -> Iterator[Text]:
    """Yield the docstrings, string literals and comments of the package."""
    for path in sorted((ROOT / "hookline").rglob("*.py")):
        source = read(path)
        yield from (Text(path, line, content) for line, content in strings_of(source))
        yield from (Text(path, line, content) for line, content in comments_of(source))


def strings_of(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def comments_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield comments; those on successive lines are one text."""
    first = last = 0
    content: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if content and line != last + 1:
            yield first, "\n".join(content)
            content = []
        if not content:
            first = line
        content.append(token.string.lstrip("# "))
        last = line
    if content:
        yield first, "\n".join(content)


def document_texts() -> Iterator[Text]:
    """Yield the English documents."""
    for path in english_pages():
        yield Text(path, 1, read(path))


def english_pages() -> list[Path]:
    pages = [path for path in sorted(DOCS.rglob("*.md")) if path.parent.name != "zh"]
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *pages]


@functools.cache
def texts() -> dict[str, list[Text]]:
    """Return all texts by their kind."""
    return {"code": list(code_texts()), "documents": list(document_texts())}


def find(pattern: str, given: list[Text]) -> list[Place]:
    """Return the places where a pattern matches whole words."""
    words = re.compile(rf"\b({pattern})\b".replace(" ", r"\s+"), re.IGNORECASE)
    places = []
    for text in given:
        for match in words.finditer(text.content):
            places.append(Place(text.path, text.line + text.content.count("\n", 0, match.start())))
    return places


@pytest.mark.parametrize("kind", LIMITS)
def test_words_to_avoid_become_fewer(kind: str) -> None:
    with all_failures() as check:
        for name, pattern in PATTERNS.items():
            places = find(pattern, texts()[kind])
            limit = LIMITS[kind].get(name, 0)
            listed = ", ".join(str(place) for place in places)
            with check(name):
                assert len(places) <= limit, f"{limit} are allowed, found {len(places)}: {listed}"
                assert len(places) >= limit, f"lower the limit to {len(places)}"


def docstrings(*kinds: type[ast.AST]) -> Iterator[tuple[Place, ast.AST, str]]:
    """Yield the docstrings of functions or classes of the package, except those of sites."""
    for path in sorted((ROOT / "hookline").rglob("*.py")):
        if path == ROOT / SITES:
            continue
        for node in ast.walk(ast.parse(read(path))):
            if isinstance(node, kinds):
                text = ast.get_docstring(node)  # type: ignore[arg-type]
                if text:
                    yield Place(path, node.lineno), node, text  # type: ignore[attr-defined]


def test_the_docstring_of_a_function_begins_with_an_imperative_verb() -> None:
    """A property is described like an attribute."""
    described = []
    for place, node, text in docstrings(ast.FunctionDef, ast.AsyncFunctionDef):
        decorators = [ast.unparse(each) for each in node.decorator_list]  # type: ignore[attr-defined]
        word = re.split(r"\W", text, maxsplit=1)[0]
        is_third_person = word.istitle() and word.endswith("s") and not word.endswith("ss")
        if any("property" in name for name in decorators):
            continue
        if NOT_IMPERATIVE.fullmatch(word) or is_third_person:
            described.append(f"{place} {word}")
    assert described == []


def test_the_docstring_of_a_class_is_a_noun_phrase() -> None:
    """A hook is described by a verb: what it does is what users look for."""
    verbs = []
    for place, node, text in docstrings(ast.ClassDef):
        word = re.split(r"\W", text, maxsplit=1)[0]
        is_hook = node.name.endswith("Hook")  # type: ignore[attr-defined]
        if THIRD_PERSON.fullmatch(word) and not is_hook:
            verbs.append(f"{place} {word}")
    assert verbs == []


def test_a_use_is_found_with_its_line_across_a_line_break() -> None:
    text = Text(ROOT / "README.md", 10, "Training\ngoes\non. It restores\nall that was told.")
    assert find(PATTERNS["go on"], [text]) == [Place(text.path, 11)]
    assert find(PATTERNS["tell"], [text]) == [Place(text.path, 13)]
    assert find(PATTERNS["tell"], [text._replace(content="colors to tell apart")]) == []


def test_prose_of_code_is_strings_and_comments() -> None:
    source = 'tell = 1  # first\n# second\n\nx = f"told {tell} again"\n'
    assert list(comments_of(source)) == [(1, "first\nsecond")]
    assert [content for _, content in strings_of(source)] == ["told ", " again"]


def test_lines_of_documents_fit_in_100_columns() -> None:
    """Tables, headings, addresses and recorded output may be longer."""
    long = []
    for path in [*english_pages(), *sorted((ROOT / "examples").rglob("*.md"))]:
        is_output = False
        for number, line in enumerate(read(path).splitlines(), start=1):
            if line.startswith("```"):
                is_output = line == "```text"
            is_exempt = is_output or line.startswith(("|", "#")) or "](http" in line
            if len(line) > MAX_COLUMNS and not is_exempt:
                long.append(str(Place(path, number)))
    assert long == []


def test_cells_of_tables_are_short() -> None:
    long = []
    for path in english_pages():
        for cell in cells_of(path):
            if count_words(cell) > MAX_WORDS_IN_CELL:
                long.append(f"{path.relative_to(ROOT)}: {cell}")
    assert long == []


def cells_of(path: Path) -> list[str]:
    cells = []
    for line in without_code(read(path)).splitlines():
        if line.startswith("| "):
            cells += [cell.strip() for cell in line.strip("|").split(" | ")]
    return cells


def count_words(cell: str) -> int:
    """Count words; a piece of code is one word."""
    text = re.sub(r"`[^`]*`", "code", cell)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return len(re.findall(r"[\w'’&\-./]+", text))


def test_a_page_begins_with_an_example() -> None:
    """Within the first twelve lines: code, a table or a picture."""
    example = re.compile(r"^(```|\| |!\[)", re.MULTILINE)
    late = []
    for path in sorted(DOCS.glob("*.md")):
        if not example.search("\n".join(read(path).splitlines()[:12])):
            late.append(path.name)
    assert late == []
