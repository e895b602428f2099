"""The command line: argument handling and printing. Everything that a command does is a call of the library."""
