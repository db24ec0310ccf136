"""What patchkit costs, and what it withstands: bench/README.md has the list."""
