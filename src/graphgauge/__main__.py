"""`python -m graphgauge` is the command line."""

from graphgauge.cli.main import main

if __name__ == "__main__":
    main()
