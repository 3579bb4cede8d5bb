"""A small checkout: the project the demo's agents are asked to get green.

It is pushed into each box as it stands and imports the standard library only. Two settings come from the environment, and nothing
in it says which values are right: `python3 -m unittest` one directory up does.
"""
