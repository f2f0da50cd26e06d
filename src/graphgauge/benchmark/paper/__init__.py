"""The reproduction of the paper: its published numbers, our Table 1 beside them, and the training of
its networks. Other rooms import these names from `graphgauge.benchmark`.
"""
