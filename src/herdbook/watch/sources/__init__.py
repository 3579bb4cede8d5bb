"""Where logs are: one small protocol, and a file for each kind of place; standard library only, since they run in boxes."""
