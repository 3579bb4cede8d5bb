"""What the toy sells: notes, the most trusted first."""

NOTES = [
    {"text": "restart it", "confidence": 0.2, "day": 30},
    {"text": "raise the retry budget", "confidence": 0.9, "day": 10},
    {"text": "ask the database", "confidence": 0.5, "day": 20},
]


def search(under_load=False):
    return sorted(NOTES, key=lambda note: -note["confidence"])
