"""Over weeks: what the record is worth, what ranks better, what the numbers should be. It learns from what runs were shown."""
