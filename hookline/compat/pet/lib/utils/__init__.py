"""Hooks, events, timers and what they need, by Pet's module names."""
