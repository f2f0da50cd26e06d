"""The few types that all rooms share. Loads no torch: import the files you need."""
