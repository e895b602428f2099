"""Small things that everything uses: errors, files, documents, caches, processes, logs."""
