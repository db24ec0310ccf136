"""Pure values: names, patch files, hunks, series, outcomes. No git, disk, clock or printing."""
