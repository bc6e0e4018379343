"""Work → number, error, status: functions of arrays, that no simulation is needed to test."""
