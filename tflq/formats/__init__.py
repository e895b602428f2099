"""Files in and out: a folder for each format, with its reader, lowering, checks, writer and list of passes."""
