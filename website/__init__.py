"""The documentation as a site: what is written in ``docs``, and the reference, which is made from the code."""
