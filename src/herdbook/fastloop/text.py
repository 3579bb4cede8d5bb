"""Text as search sees it: one tokenizer for scoped search, for `task=` and for the engine's index, so that all find the same.

It promises that names are found by their parts and whole (`retry_budget`, `sshPort`, `a.b/c`), and scripts written without spaces
by any two neighbouring characters. Tokens hold letters, marks and digits only, so an engine's own tokenizer takes them over as
they are. No word is left out of the index: frequent ones weigh little.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from herdbook.record.types import Version

NORMALISED_CHARS: Final = 1024  # a character torn at a border is at worst not found by its whole form
TOKEN_CHARS_MAX: Final = 64  # longer runs are data; their beginning is enough to find them
CHUNKS_KEPT: Final = 16_384  # some megabytes at most
KEY_WEIGHT: Final = 2  # a word in the key counts as if it were said twice

# A query that matches only by these has matched nothing; they are indexed like all others.
FUNCTION_WORDS: Final = """
a an and are as at be been being but by can did do does for from had has have how i if in into is it its me my of on or our so
than that the their them then there these they this those to us was we were what when where which who why will with you your
"""

# Thai, Lao, Myanmar, Khmer, kana, Hangul, Han: written without spaces, or with particles attached.
UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
RUNS: Final = re.compile(f"[{UNSPACED}]+|[^{UNSPACED}]+")
UNSPACED_FIRST: Final = re.compile(f"[{UNSPACED}]")
JOINTS: Final = re.compile(r"[_\-./:@+]+")  # what joins the parts of a name
HUMPS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z]+")  # sshPort, HTTPServer, sha256
NAME_PARTS_MAX: Final = 8  # beyond that it is a path or a sentence, and nobody asks for it whole
HUMPS_MAX: Final = 4  # a hash has more, and none of them means anything


class Breaks(dict[int, str | int]):
    """What `str.translate` makes of each character, learnt as characters are met: words and joints stay, symbols become words."""

    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        kind = unicodedata.category(character)
        kept: str | int
        if kind[0] in "LMN" or character in "_-./:@+":
            kept = code
        elif kind == "So" or (kind == "Sk" and code > 0xFFFF):
            kept = f" {symbol_word(code)} "
        else:
            kept = "" if kind == "Cf" else " "
        if len(self) < 70_000:  # a bound, whatever is sent
            self[code] = kept
        return kept


def symbol_word(code: int) -> str:
    """A symbol such as an emoji as a word of letters, which every engine's tokenizer leaves in one piece."""
    return "symbol" + "".join(chr(ord("a") + int(digit, 16)) for digit in f"{code:x}")


BREAKS: Final = Breaks()


def tokenize(text: str) -> list[str]:
    """Every token of the text, in order, repeated as often as it is said."""
    if not text.isascii():
        text = normalised(text)
    found: list[str] = []
    for chunk in text.translate(BREAKS).split():
        found += chunk_tokens(chunk) if len(chunk) <= TOKEN_CHARS_MAX else name_tokens(chunk)
    return found


@lru_cache(maxsize=CHUNKS_KEPT)
def chunk_tokens(chunk: str) -> tuple[str, ...]:
    """The tokens of what stands between two spaces. The same few words are met in most entries."""
    if chunk.isalpha() and chunk.isascii() and (chunk.islower() or chunk.istitle()):
        return (stem(chunk.lower()),)
    return tuple(name_tokens(chunk))


def name_tokens(chunk: str) -> Iterator[str]:
    """The parts of a name, and the name as a whole without its joints."""
    parts = [part for part in JOINTS.split(chunk) if part]
    for part in parts:
        for run in RUNS.findall(part):
            yield from unspaced_tokens(run) if UNSPACED_FIRST.match(run) else word_tokens(run)
    if 1 < len(parts) <= NAME_PARTS_MAX:
        whole = "".join(parts)
        if len(whole) <= TOKEN_CHARS_MAX:
            yield stem(whole.lower())


def word_tokens(word: str) -> Iterator[str]:
    """A word, and its humps and digits when it is put together from several."""
    yield stem(word.lower()[:TOKEN_CHARS_MAX])
    if word.isascii() and not word.isdigit():
        humps = HUMPS.findall(word)
        if 1 < len(humps) <= HUMPS_MAX:
            for hump in humps:
                yield stem(hump.lower())


def unspaced_tokens(run: str) -> Iterator[str]:
    """Every character and every two neighbours: any part of the run is found, whatever its words are."""
    yield from run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


def stem(word: str) -> str:
    """Plural and tense taken off, the same way on both sides; being wrong about a word only makes it equal to its neighbour."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            return word[:-1] if word[-1] == word[-2] and word[-1] not in "ls" else word
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


FUNCTION_STEMS: Final = frozenset(map(stem, FUNCTION_WORDS.split()))


def query_tokens(text: str, *, tokens_max: int) -> list[str]:
    """The distinct tokens of a question that say something; single characters of a longer run are left to its pairs."""
    distinct = dict.fromkeys(tokenize(text))
    pairs = {character for token in distinct if len(token) == 2 and UNSPACED_FIRST.match(token) for character in token}
    telling = [token for token in distinct if token not in FUNCTION_STEMS and token not in pairs]
    return (telling or list(distinct))[:tokens_max]


def named(text: str) -> frozenset[str]:
    """The tokens of a question that come from names and not from words."""
    if not text.isascii():
        text = normalised(text)
    names = filter(is_name, text.translate(BREAKS).split())
    return frozenset(token for name in names for token in chunk_tokens(name))


def is_name(chunk: str) -> bool:
    """A code, number, path, option, constant or identifier: what people write down to be found by, and never inflect."""
    if len(chunk) > TOKEN_CHARS_MAX:
        return False
    if chunk.isalpha():
        return len(chunk) > 1 and chunk.isascii() and not chunk.islower() and not chunk.istitle()
    return any(map(str.isdigit, chunk)) or 1 < sum(map(bool, JOINTS.split(chunk))) <= NAME_PARTS_MAX


def words_of(version: Version) -> list[str]:
    """The tokens a version is found by: its key, the last part of its path, its value, why and applies_when."""
    key = tokenize(version.key)
    place = tokenize(version.path.rpartition("/")[2])
    said = [plain_value(version.value_text), version.why or "", version.applies_when or ""]
    return key * KEY_WEIGHT + place + [token for text in said for token in tokenize(text)]


def plain_value(value_text: str) -> str:
    """The value without JSON's own escapes, which would otherwise stick to words."""
    if "\\" not in value_text:
        return value_text
    return " ".join(strings_of(json.loads(value_text)))


def strings_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from strings_of(member)
    elif isinstance(value, list):
        for member in value:
            yield from strings_of(member)
    else:
        yield str(value)


def folded(text: str) -> str:
    """The form in which parts of words are compared, where no token matches."""
    return text.casefold() if text.isascii() else normalised(text).casefold()


def normalised(text: str) -> str:
    """NFKC in pieces: a long run of combining marks costs the square of its length, and anybody may write one."""
    pieces = [text[start : start + NORMALISED_CHARS] for start in range(0, len(text), NORMALISED_CHARS)]
    return "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)
