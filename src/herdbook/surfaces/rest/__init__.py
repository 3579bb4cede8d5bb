"""The REST surface: every verb as `POST /v1/{verb}`, the asking ones also as `GET`, and a few pages for machines.

A request is one straight walk: the edge (`base/http_edge.py`) lets whole requests through, a door (`auth.py`) says who is
calling, the service validates and answers. What changes the record goes through one batching writer (`batching.py`) and is
acknowledged after its commit. `box_sockets.py` serves the same verbs to boxes, one unix socket each; `command.py` is what
`herdbook serve` runs.
"""
