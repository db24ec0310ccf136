"""This machine beside what a manifest asks for: Python, CANN, driver, packages, variables."""
