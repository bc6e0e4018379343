"""`annealz`, and `python -m annealz`: signals are answered before anything large is imported."""

from annealz.cli.signals import answer_signals


def main() -> None:
    """Run the command line and exit."""
    answer_signals()
    from annealz.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
