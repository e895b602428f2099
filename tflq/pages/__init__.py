"""Pages for people: each one self-contained HTML file, made of data that the library gives."""
