"""`python -m hookline` is the command `hookline`."""

from hookline.cli.main import entry

if __name__ == "__main__":  # data workers that are spawned import this module again
    entry()
