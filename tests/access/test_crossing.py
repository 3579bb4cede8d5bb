"""Ten thousand attempts to cross from one customer to another, over every verb and field: no byte of theirs, and no hint.

Here in process, where all of them take seconds; tests/rest/test_crossing.py does it over every address of a server.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from herdbook.base.errors import HerdbookError
from herdbook.testing.record_book import Desk
from tests.access.crossing import CANARY, NOBODY, SECRET, Town, verbs, without_ids

SEED = 20261130
SOME, ALL = 200, 2_500  # of each town, asking and telling


@pytest.fixture(scope="module", params=[True, False], ids=["tenants", "paths"])
def town(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    built = Town(tmp_path_factory.mktemp("town"), tenants=request.param)
    yield built
    built.close()


def said(desk: Desk, verb: str, fields: dict[str, Any], name: str) -> str:
    """The answer or refusal, with the name taken out."""
    try:
        answer: Any = desk.do(verb, **fields)
    except HerdbookError as problem:
        answer = [problem.status, problem.as_dict()]
    return json.dumps(answer, sort_keys=True).replace(name, "X")


@pytest.mark.slow
@pytest.mark.parametrize("attempts", [SOME, pytest.param(ALL, marks=[pytest.mark.long, pytest.mark.timeout(600)])])
@pytest.mark.parametrize("tells", [False, True], ids=["asking", "telling"])  # in this order: telling makes things of one's own
def test_nothing_crosses(town: Town, tells: bool, attempts: int) -> None:
    """A customer's data, or that there is such a customer, would be told to another one."""
    chance = random.Random(SEED + attempts)
    asked, told = 0, set[str]()
    while asked < attempts:
        for verb in verbs(tells=tells):
            pair = town.pair(verb, chance)
            answers = [said(town.mine, verb, fields, name) for fields, name in zip(pair, (CANARY, NOBODY), strict=True)]
            asked += len(answers)
            told.add(answers[0][:6])
            assert without_ids(json.loads(answers[1])) == without_ids(json.loads(answers[0])), (verb, pair)
            assert SECRET not in answers[0], (verb, pair)
    assert len(told) > 2  # refused and answered in several ways
