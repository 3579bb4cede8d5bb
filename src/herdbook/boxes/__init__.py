"""Disposable environments: five calls for every provider, a host that keeps leases, and a reaper for what nobody keeps.

Promises that a box holds nothing of its host and that nothing outlives its lease. Knows the record only as four verbs.
"""
