"""What the measures are built from: functions on arrays that know nothing of models and files."""
