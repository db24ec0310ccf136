"""Tests; a package so that test modules of the same name can live in several folders."""
