"""What a reader sees: tables, figures and the report."""
