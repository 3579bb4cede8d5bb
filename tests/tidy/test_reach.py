"""Every verb and every field says what it reaches: what is not declared is denied, and here it is missed."""

from __future__ import annotations

import pytest

from herdbook.service import reaching
from herdbook.service.verbs import VERBS


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_declares_what_it_reaches(verb: str) -> None:
    """A key for one customer could ask a verb that nobody thought of: add the verb and its fields to service/reaching.py."""
    assert verb in reaching.VERBS
    if reaching.VERBS[verb] != reaching.TENANT:  # which is denied whatever it names
        assert set() == set(VERBS[verb].request.__struct_fields__) - set(reaching.FIELDS)


def test_nothing_is_declared_that_is_not_there() -> None:
    """The table would be read as if it said what is."""
    assert set(VERBS) == set(reaching.VERBS)
    fields = {name for verb in VERBS.values() for name in verb.request.__struct_fields__}
    assert set() == set(reaching.FIELDS) - fields
