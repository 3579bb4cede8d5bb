"""The watcher: one fresh box per deploy and per alert, held by code and history. See DESIGN.md."""
