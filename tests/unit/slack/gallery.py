"""A page that shows every golden card, for a person to look at.

.venv/bin/python -m tests.unit.slack.gallery > cards.html
.venv/bin/python -m tests.unit.slack.gallery --write > cards.html     and writes the files again
"""

import argparse
import html
import json
import sys
from pathlib import Path
from typing import Any

from tests.unit.slack.cards import SAMPLES, Sample

from pynchy.channels.slack.render import SlackMessage

GOLDEN = Path(__file__).parent / "golden"
STYLE = """
body { font: 15px/1.45 sans-serif; background: #f4f4f4; margin: 2em }
h2 { margin-top: 2em } .row { display: flex; gap: 2em; align-items: flex-start; flex-wrap: wrap }
.card { background: white; border: 1px solid #ddd; border-radius: 8px; padding: 12px; width: 560px;
  margin-bottom: 8px; overflow-wrap: anywhere; white-space: pre-wrap }
.card > * { margin: 6px 0 } .header { font-weight: bold; font-size: 18px }
.context { color: #616061; font-size: 12px } .section { display: flex; gap: 12px }
.section > span { flex: 1 } button { padding: 4px 12px } input[type=text] { width: 90% }
.primary { background: #007a5a; color: white } pre { background: #f8f8f8; border: 1px solid #ddd }
small { color: #616061 }
"""


def golden_of(sample: Sample) -> str:
    rendering = sample.rendering()
    kept = {
        "messages": [_kept(message) for message in rendering.messages],
        "details": [_kept(message) for message in rendering.details],
        "settled": [_kept(message) for message in sample.settled()],
    }
    return json.dumps(kept, indent=1, ensure_ascii=False) + "\n"


def _kept(message: SlackMessage) -> dict[str, Any]:
    return {"text": message.text, "question": message.question, "blocks": message.blocks}


def page() -> str:
    parts = [f"<!doctype html><meta charset=utf-8><title>Cards</title><style>{STYLE}</style>"]
    for name in SAMPLES:
        golden = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
        parts.append(f"<h2>{name.replace('_', ' ')}</h2><div class=row>")
        for kind, messages in golden.items():
            posted = "".join(_message(message) for message in messages)
            parts.append(f"<div><small>{kind}</small>{posted}</div>")
        parts.append("</div>")
    return "\n".join(parts)


def _message(message: dict[str, Any]) -> str:
    posted = "".join(_block(block) for block in message["blocks"])
    return f"<div class=card title='{html.escape(message['text'])}'>{posted}</div>"


def _block(block: dict[str, Any]) -> str:
    match block["type"]:
        case "header":
            return f"<div class=header>{_text(block['text'])}</div>"
        case "section":
            beside = _element(block["accessory"]) if "accessory" in block else ""
            return f"<div class=section><span>{_text(block['text'])}</span>{beside}</div>"
        case "context":
            return f"<div class=context>{' &nbsp; '.join(map(_text, block['elements']))}</div>"
        case "actions":
            return f"<div>{' '.join(map(_element, block['elements']))}</div>"
        case "input":
            return (
                f"<div><small>{_text(block['label'])}</small><br>{_element(block['element'])}</div>"
            )
        case "rich_text":
            texts = [e["text"] for part in block["elements"] for e in part["elements"]]
            return "".join(f"<pre>{html.escape(text)}</pre>" for text in texts)
        case _:
            return "<hr>"


def _element(element: dict[str, Any]) -> str:
    match element["type"]:
        case "button":
            return f"<button class='{element.get('style', '')}'>{_text(element['text'])}</button>"
        case "plain_text_input":
            return f"<input type=text placeholder='{_text(element['placeholder'])}'>"
        case "static_select":
            chosen = "".join(f"<option>{_text(o['text'])}" for o in element["options"])
            return f"<select>{chosen}</select>"
        case kind:
            mark = "radio" if kind == "radio_buttons" else "checkbox"
            return "".join(
                f"<div><input type={mark}> {_text(o['text'])} "
                f"<small>{_text(o['description']) if 'description' in o else ''}</small></div>"
                for o in element["options"]
            )


def _text(text: dict[str, Any]) -> str:
    return html.escape(text["text"])


def write() -> None:
    for old in GOLDEN.glob("*.json"):
        old.unlink()
    for name, sample in SAMPLES.items():
        (GOLDEN / f"{name}.json").write_text(golden_of(sample), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the golden files again")
    if parser.parse_args().write:
        write()
    sys.stdout.write(page())
