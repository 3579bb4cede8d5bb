"""The record on PostgreSQL 15 or later: the same protocol, queries and answers as on SQLite, for many servers and many tenants.

`store` keeps the protocol, `connection` speaks to the driver, `refusals` makes its errors ours, `setup` is what a DBA runs.
Nothing outside this folder knows that it is there but `record/store/opening.py`.
"""
