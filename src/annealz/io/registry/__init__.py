"""What can be asked for by name, annealz's own and that of other packages: schedules, model files."""
