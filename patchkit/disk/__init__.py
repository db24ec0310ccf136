"""What is on disk, replaced whole or not at all: files, locks, transactions, kept results."""
