"""The demo: two boxes and one record, played on this machine. Everything it says, it has measured."""
