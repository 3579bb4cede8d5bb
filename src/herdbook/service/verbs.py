"""Every verb there is, once: its name, the scope it needs, what it takes and what it does. Surfaces are made from this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from herdbook.service import answers, asking, requests, telling
from herdbook.service.access import answers as access_answers
from herdbook.service.access import following, keys, passes, searching
from herdbook.service.access import requests as access
from herdbook.service.learning import acting
from herdbook.service.learning import answers as learnt
from herdbook.service.learning import requests as learning
from herdbook.service.models import acts as models
from herdbook.service.models import answers as model_answers
from herdbook.service.models import requests as model_requests
from herdbook.service.slow import acts as slow
from herdbook.service.slow import answers as slow_answers
from herdbook.service.slow import erasures, exporting, fitting, registry
from herdbook.service.slow import requests as slow_requests
from herdbook.service.spans import acts as spans
from herdbook.service.spans import answers as span_answers
from herdbook.service.spans import requests as span_requests


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing herdbook does for a caller."""

    name: str
    scope: str  # one of SCOPES
    request: type[requests.Request]
    answer: Any  # a TypedDict, for the documents
    act: Callable[..., Any]  # asks: answers a dict; tells: answers the work for a transaction
    tells: bool
    changes: Callable[[Mapping[str, Any]], int] | None = None  # how many a request holds, where that may be more than one

    @property
    def doc(self) -> str:
        return (self.request.__doc__ or "").strip()


def ask(name: str, scope: str, request: type[requests.Request], answer: Any, act: Callable[..., Any]) -> Verb:
    return Verb(name, scope, request, answer, act, tells=False)


def tell(name: str, scope: str, request: type[requests.Request], answer: Any, act: Callable[..., Any]) -> Verb:
    return Verb(name, scope, request, answer, act, tells=True)


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        tell("start_session", "write", requests.StartSession, answers.SessionStarted, telling.start_session),
        tell("end_session", "write", requests.EndSession, answers.SessionEnded, telling.end_session),
        ask("brief", "read", requests.Brief, answers.Briefing, asking.brief),
        ask("contradictions", "read", requests.Contradictions, answers.ContradictionsFound, asking.contradictions),
        ask("read", "read", requests.Read, answers.EntryRead, asking.read),
        ask("search", "read", requests.Search, answers.SearchResults, asking.search),
        ask("history", "read", requests.History, answers.EntryHistory, asking.history),
        ask("diff", "read", requests.Diff, answers.EntryDiff, asking.diff),
        ask("list", "read", requests.List, answers.EntryList, asking.list_entries),
        tell("write", "write", requests.Write, answers.Written, telling.write),
        tell("record_action", "write", requests.RecordAction, answers.Step, telling.record_action),
        tell("record_context", "write", requests.RecordContext, answers.Step, telling.record_context),
        replace(
            tell("record_spans", "write", span_requests.RecordSpans, span_answers.SpansRecorded, spans.record_spans),
            changes=span_requests.changes,
        ),
        tell("attempt", "write", requests.Attempt, answers.AttemptKept, telling.attempt),
        tell("commit_outcome", "write", requests.CommitOutcome, answers.OutcomeCommitted, telling.commit_outcome),
        tell("attest", "attest", requests.Attest, answers.Attested, telling.attest),
        tell("revise_outcome", "write", requests.ReviseOutcome, answers.OutcomeRevised, telling.revise_outcome),
        ask("trace", "read", requests.Trace, answers.TraceAnswer, asking.trace),
        ask("outcomes", "read", requests.Outcomes, answers.OutcomesAnswer, asking.outcomes),
        ask("runs", "host", requests.Runs, answers.RunsPage, asking.runs),
        ask("why", "read", requests.Why, answers.WhyAnswer, asking.why),
        ask("prove", "host", slow_requests.Prove, slow_answers.Proof, slow.prove),
        tell("retrain", "host", slow_requests.Retrain, slow_answers.Retrained, fitting.retrain),
        ask("rankers", "host", slow_requests.Rankers, slow_answers.RankersAnswer, fitting.list_rankers),
        tell("promote", "host", slow_requests.Promote, learnt.TuningSet, fitting.promote),
        tell("calibrate", "host", slow_requests.Calibrate, slow_answers.Calibrated, fitting.calibrate),
        tell("rollback", "host", slow_requests.Rollback, learnt.TuningSet, fitting.rollback),
        ask(
            "export_training_data",
            "host",
            slow_requests.ExportTrainingData,
            slow_answers.TrainingRows,
            exporting.export_training_data,
        ),
        tell("artefact_keep", "host", slow_requests.KeepArtefact, slow_answers.ArtefactView, registry.artefact_keep),
        tell("artefact_runs", "host", slow_requests.ArtefactRuns, slow_answers.ArtefactRunsKept, registry.artefact_runs),
        tell("artefact_set", "host", slow_requests.SetArtefact, slow_answers.ArtefactView, registry.artefact_set),
        ask("artefact_list", "host", slow_requests.Artefacts, slow_answers.ArtefactList, registry.artefact_list),
        ask("erase_preview", "admin", slow_requests.PreviewErasure, slow_answers.ErasurePreview, erasures.erase_preview),
        tell("erase", "admin", slow_requests.Erase, slow_answers.Erased, erasures.erase),
        ask("erasures", "admin", slow_requests.Erasures, slow_answers.ErasureList, erasures.erasures),
        tell("model_route", "host", model_requests.RouteModel, model_answers.RouteView, models.model_route),
        tell("model_promote", "host", model_requests.PromoteModel, model_answers.RouteView, models.model_promote),
        tell("model_rollback", "host", model_requests.RollbackModel, model_answers.RouteView, models.model_rollback),
        ask("model_routes", "host", model_requests.ModelRoutes, model_answers.RoutesAnswer, models.model_routes),
        tell("model_call", "write", model_requests.ModelCall, model_answers.CallKept, models.model_call),
        tell("tune", "host", learning.Tune, learnt.TuningSet, acting.tune),
        ask("tuning", "read", learning.Tuning, learnt.TuningAnswer, acting.tuning),
        ask("embed", "host", learning.Embed, learnt.Embedded, acting.embed),
        ask("exposures", "host", learning.Exposures, learnt.ExposuresAnswer, acting.exposures),
        tell("box_open", "host", requests.BoxOpen, answers.BoxView, telling.box_open),
        tell("box_beat", "host", requests.BoxBeat, answers.BoxView, telling.box_beat),
        tell("box_close", "host", requests.BoxClose, answers.BoxView, telling.box_close),
        ask("box_list", "host", requests.BoxList, answers.Boxes, asking.box_list),
        tell("box_promote", "host", requests.BoxPromote, answers.BoxPromoted, telling.box_promote),
        ask("box_runs", "host", requests.BoxRuns, answers.BoxRunsAnswer, asking.box_runs),
        tell("box_pass", "host", access.MakeBoxPass, access_answers.BoxPassMade, passes.box_pass),
        ask("box_check", "host", access.CheckBoxPass, access_answers.BoxPassChecked, passes.box_check),
        tell("job_put", "dispatch", requests.JobPut, answers.JobWas, telling.job_put),
        tell("job_take", "host", requests.JobTake, answers.JobTaken, telling.job_take),
        tell("job_beat", "host", requests.JobBeat, answers.JobView, telling.job_beat),
        tell("job_done", "host", requests.JobDone, answers.JobView, telling.job_done),
        tell("job_reap", "host", requests.JobReap, answers.JobsGivenUp, telling.job_reap),
        ask("job_list", "host", requests.JobList, answers.Jobs, asking.job_list),
        tell("key_create", "admin", access.CreateKey, access_answers.KeyView, keys.key_create),
        ask("key_list", "admin", access.ListKeys, access_answers.Keys, keys.key_list),
        tell("key_revoke", "admin", access.RevokeKey, access_answers.KeysRevoked, keys.key_revoke),
        tell("key_rotate", "admin", access.RotateKey, access_answers.KeyView, keys.key_rotate),
        ask("changes", "read", access.Changes, access_answers.ChangesAnswer, following.changes),
        ask("audit", "admin", access.Audit, access_answers.AuditAnswer, searching.audit),
        tell("tenant_create", "operator", access.CreateTenant, access_answers.TenantView, keys.tenant_create),
        ask("tenant_list", "operator", access.ListTenants, access_answers.Tenants, keys.tenant_list),
        tell("tenant_limit", "operator", access.LimitTenant, access_answers.TenantView, keys.tenant_limit),
        tell("tenant_admit", "operator", access.AdmitTenant, access_answers.TenantView, keys.tenant_admit),
        ask("status", "host", requests.Status, answers.StatusAnswer, asking.status),
    )
}
