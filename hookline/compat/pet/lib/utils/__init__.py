"""Hooks, events, timers and helpers, in modules with Pet's names."""
