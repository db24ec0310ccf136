"""The only package that starts git or imports GitPython."""
