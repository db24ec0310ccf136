"""What a check says beyond single patches."""
