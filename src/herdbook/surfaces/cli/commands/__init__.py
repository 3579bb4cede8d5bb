"""One module a command: `EXAMPLES`, `add_arguments(parser)` and `run(invocation) -> exit code`; loaded only when it is chosen."""
