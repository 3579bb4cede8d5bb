"""What runs in the box: the actor that watches, and the errand that tells. Standard library and client.py only."""
