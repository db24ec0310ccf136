"""From a manifest to the files of a machine: scripts, environment, image, version table."""
