"""What can be taken away: each folder is an extension, found by entry points as anybody's is."""
