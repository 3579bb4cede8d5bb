"""What people are told, as text: short, with what it rests on, and with the words that open it."""

from __future__ import annotations

from typing import Any

TEXT_CHARS_MAX = 3_000


def message(key: str, entity: str, finding: dict[str, Any], verdicts: list[dict[str, Any]], drafts: list[dict[str, Any]]) -> str:
    """One message for a watch that found something."""
    lines = []
    for verdict in verdicts:
        known = f", known as {verdict['class']}" if verdict["class"] else ", a first sighting"
        lines.append(f"{key}: {verdict['service']} shows {verdict['label']}{known}")
        lines += [f"> {plain(each)}" for each in verdict["evidence"][:2]]
        lines.append(f"Draft: {'yes' if verdict['allowed'] else 'no'}. {verdict['reason']}")
    lines += [
        f"Draft pull request: {each['url']} ({each['how']})" if each.get("url") else f"No draft was opened: {each['why']}"
        for each in drafts
    ]
    lines += [f"{key}: {name} was not watched: {plain(why)}" for name, why in finding["unreadable"].items()]
    lines.append(f"Open it: herdbook watch why {key}    Disagree: herdbook watch dispute {key} --why '...'")
    lines.append(f"Add to it: herdbook note {entity} {key} '...'")
    return "\n".join(lines)[:TEXT_CHARS_MAX]


def plain(text: str) -> str:
    """A log line within a message: one line, with nothing that mentions people or makes links."""
    first = text.strip().split("\n")[-1][:300]
    return first.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "(at)").replace("://", "[:]//")
