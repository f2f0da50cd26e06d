"""The command line: read arguments, call one function, show."""
