"""What writes generated files of this repository; no part of the wheel."""
