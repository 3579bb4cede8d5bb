"""Over weeks: training sets, what the record is worth, what ranks better, what the numbers should be. It learns from runs."""
