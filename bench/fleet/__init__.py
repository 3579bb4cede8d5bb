"""Fleets that run over the record, simulated: `python -m bench fleet`.

A scenario file describes a hidden world. Agents live in it run by run, acting on what their briefing shows; the world decides
how that ends. Policies differ only in what they show, so what differs in the table is what the showing was worth.
"""
