"""Costs of hooks and phases, torch profiles, run traces, memory growth."""
