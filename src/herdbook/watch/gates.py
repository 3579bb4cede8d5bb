"""What an actor may do by itself: hardcoded rules over code's findings and the record's history. Pure; boring on purpose.

`herdbook watch init` copies this file, with its tests, into your repository; the copy there is then the one that runs. No gate
merges, and none moves traffic: the most that any of them allows is a draft that a person reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from herdbook.watch.findings import Instance, KnownClass, Signals, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

DRAFTABLE = "product_regression"  # the one label that a change to our own code can mend
NEVER_BESIDE = ("cold_image", "startup_unhealthy", "image_pull_error")  # an old revision still serves: there is nothing to mend


def should_draft_pr(
    label: str,  # what classify_from_logs said
    signals: Signals,  # what it rests on
    matched_class: KnownClass | None,  # the entry that names this kind of thing, if it was seen before
    history: Sequence[Instance],  # every time somebody acted on that class, oldest first
) -> Verdict:
    """A draft only for what is surely our own regression, was seen before, and whose last fix held."""
    # 1. Only a regression of the product. Everything else is written down, and that is all.
    if label != DRAFTABLE:
        return no(f"{label} is not a {DRAFTABLE}: written down, no draft", matched_class)

    # 2. Whatever label was handed in, a slow image in the logs or in the class means that nothing is broken.
    slow = next((seen for seen in NEVER_BESIDE if seen in signals.seen), None)
    if slow is not None:
        return no(f"the logs show {slow}: a draft would mend what is not broken", matched_class)

    # 3. Known, and known as this. The first sighting of anything is a person's.
    if matched_class is None:
        return no("first sighting of this class: a human names it and decides", None)
    if matched_class.label != DRAFTABLE:
        return no(f"the class {matched_class.key} is a {matched_class.label}, whatever this run calls it", matched_class)

    # 4. Two stories that fit are no story.
    if signals.ambiguous_with:
        return no(f"the same lines would fit {', '.join(signals.ambiguous_with)}: a human should look", matched_class)

    # 5. What the class has earned. A success counts if somebody outside the acting box vouches for it; a failure always counts.
    acted = [each for each in history if each.attested or not each.held]
    held = sum(each.held for each in acted)
    if not acted:
        return no("seen before, but no fix of it has been acted on and resolved: a human should look", matched_class)
    if not acted[-1].held:
        return no(
            f"drafted this before, the fix didn't hold ({acted[-1].outcome}, {acted[-1].ref}): a human should look",
            matched_class,
            acted,
        )
    if len(acted) - held > held:
        return no(
            f"its failures outweigh its successes ({len(acted) - held} to {held}): a human should look", matched_class, acted
        )
    if matched_class.standing in ("contested", "retired"):
        return no(f"the class is {matched_class.standing}: a human should look", matched_class, acted)
    return Verdict(
        True,
        f"a {DRAFTABLE} seen before, and the last fix held ({acted[-1].ref})",
        (named(matched_class),),
        tuple(each.ref for each in acted),
    )


def no(reason: str, matched_class: KnownClass | None, rests_on: Sequence[Instance] = ()) -> Verdict:
    entries: tuple[str, ...] = () if matched_class is None else (named(matched_class),)
    return Verdict(False, reason, entries, tuple(each.ref for each in rests_on))


def named(entry: KnownClass) -> str:
    """An entry at the version that was read."""
    return f"{entry.entity} {entry.key} {entry.version}"
