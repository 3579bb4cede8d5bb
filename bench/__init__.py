"""What herdbook claims about its speed, measured: one file per claim, every figure a ratio or a bound.

`python -m bench` runs all of it; nothing here is imported by the product.
"""
