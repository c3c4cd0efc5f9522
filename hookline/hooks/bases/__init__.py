"""Base classes shared by several hooks."""
