"""The only room that spawns git or imports GitPython."""
