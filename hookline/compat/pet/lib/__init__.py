"""The part of Pet that its document on hooks is about."""
