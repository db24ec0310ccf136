"""Real bumps, carried and graded by what maintainers made of them: docs/carry.md."""
