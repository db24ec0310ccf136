"""Patches in Yocto recipes and RPM specs."""
