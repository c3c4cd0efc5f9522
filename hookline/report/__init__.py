"""The report of a run: one HTML page, a live page, and text for the terminal."""
