"""What the profiling hooks share: counting, phases in a torch profile, the trace of a whole run, growth of memory."""
