"""What other people's libraries see of the record, each a thin module that is imported by name and needs its own library."""
