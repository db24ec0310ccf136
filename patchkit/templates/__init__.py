"""Text files that patchkit writes for people, as jinja2 templates; jinja2's only user."""
