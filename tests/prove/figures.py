"""Put the figures of a run of `make prove` into docs/reliability.md, between its two marks.

.venv/bin/python -m tests.prove.figures .proof.json docs/reliability.md
"""

import json
import sys
from pathlib import Path

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def table(figures: dict[str, dict[str, object]]) -> str:
    """Return the figures as a table."""
    rows = [f"| {name} | {_told(values)} |" for name, values in figures.items()]
    return "\n".join(["| what | figures |", "|---|---|", *rows])


def _told(values: dict[str, object]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in values.items())


def main(report: str, page: str) -> None:
    """Replace what stands between the marks."""
    text = Path(page).read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    figures = table(json.loads(Path(report).read_text()))
    Path(page).write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}")


if __name__ == "__main__":
    main(*sys.argv[1:])
