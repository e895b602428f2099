"""Which operators convert, on which signatures, and how: asked of the engine, one small model per row (`table`), or
read from the table of it that comes with the package (`rows`)."""
