"""The part of Pet's `lib` that Hookline covers."""
