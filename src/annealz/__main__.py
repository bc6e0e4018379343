"""`python -m annealz` is `annealz`."""

from annealz.cli.main import main

main()
