"""Write the table of loaders into docs/resume.md, from the loaders that the tests run.

python -m scripts.docs.resume_table
"""

from __future__ import annotations

from pathlib import Path

from tests.data.loader_table import make_table

PAGE = Path(__file__).parents[2] / "docs" / "resume.md"
BEGIN = "<!-- Written by: python -m scripts.docs.resume_table -->\n"
END = "<!-- End of the table -->\n"


def with_table(page: str) -> str:
    """Return the text of the page with the current table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{make_table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
