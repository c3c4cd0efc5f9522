"""Pictures of a training run.

Modules named after a kind of picture (`classification`, `boxes`, `bars`, …) describe it on a
`Canvas`; `backends.render` turns a canvas into pixels with Pillow or matplotlib.
"""
