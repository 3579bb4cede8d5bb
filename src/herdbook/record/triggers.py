"""The triggers that a record has to have, by engine: what must hold whatever writes. A doctor says which are missing."""

from __future__ import annotations

from typing import Final

EVERYWHERE: Final = frozenset(
    {
        "outcome_cause_moves_trust_v1",
        "outcome_cause_moves_as_told_v1",
        "revision_refolds_trust_v1",
        "version_without_gap_v1",
        "version_is_immutable_v1",
        "version_is_kept_v1",
        "entry_moves_one_version_v1",
        "outcome_is_immutable_v1",
        "outcome_is_kept_v1",
        "outcome_cause_is_a_log_v1",
        "outcome_cause_is_kept_v1",
        "revision_is_immutable_v1",
        "revision_is_kept_v1",
        "attestation_is_immutable_v1",
        "attestation_is_kept_v1",
        "trace_is_immutable_v1",
        "trace_is_kept_v1",
        "tenant_has_multipliers_v1",
        "access_key_only_ends_v1",
        "access_key_is_kept_v1",
        "audit_is_immutable_v1",
        "audit_is_kept_v1",
        "tuning_is_immutable_v1",
        "tuning_is_kept_v1",
        "ranker_is_immutable_v1",
        "ranker_is_kept_v1",
        "erasure_is_immutable_v1",
        "erasure_is_kept_v1",
        "erased_session_is_immutable_v1",
        "erased_session_is_kept_v1",
        "erased_version_is_immutable_v1",
        "erased_version_is_kept_v1",
        "artefact_is_immutable_v1",
        "artefact_is_kept_v1",
        "artefact_state_is_immutable_v1",
        "artefact_state_is_kept_v1",
        "entry_is_touched_v1",
        "claim_is_touched_v1",
        "model_route_is_immutable_v1",
        "model_route_is_kept_v1",
    }
)
TRIGGERS: Final = {
    "sqlite": EVERYWHERE | {"read_is_recalled_v1"},
    "postgres": EVERYWHERE | {"access_key_is_given_v1"},  # what was read is counted by the statement that folds it
}
