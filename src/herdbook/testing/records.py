"""What every store of the record promises, as tests: subclass `RecordContract`, give it a book, and let pytest run it.

    class TestMine(RecordContract):
        @pytest.fixture
        def book(self, tmp_path): return Book(opener=..., tenant_maker=...)

It goes through the verbs only, so it says nothing about how a store works: two engines that pass it give the same answers.
"""

from __future__ import annotations

from herdbook.testing.record_artefacts import ArtefactsContract
from herdbook.testing.record_attesting import AttestingContract
from herdbook.testing.record_batches import BatchContract
from herdbook.testing.record_book import ENTITY, Book, Desk, as_bytes, at_once, box, person, refusal, refused
from herdbook.testing.record_erasing import ErasingContract
from herdbook.testing.record_following import FollowingContract
from herdbook.testing.record_identities import IdentitiesContract
from herdbook.testing.record_jobs import JobsContract
from herdbook.testing.record_learning import LearningContract
from herdbook.testing.record_models import ModelsContract
from herdbook.testing.record_once import OnceContract
from herdbook.testing.record_reading import ReadingContract
from herdbook.testing.record_runs import RunsContract
from herdbook.testing.record_trust import TrustContract
from herdbook.testing.record_writing import WritingContract

__all__ = ["ENTITY", "Book", "Desk", "RecordContract", "as_bytes", "at_once", "box", "person", "refusal", "refused"]


class RecordContract(
    WritingContract,
    OnceContract,
    BatchContract,
    TrustContract,
    AttestingContract,
    ReadingContract,
    FollowingContract,
    IdentitiesContract,
    LearningContract,
    JobsContract,
    RunsContract,
    ArtefactsContract,
    ErasingContract,
    ModelsContract,
):
    """All of it."""
