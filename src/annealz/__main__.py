"""`annealz`, and `python -m annealz`: signals are answered before anything large is imported."""

import sys

from annealz.cli.signals import answer_signals, status_at_end

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit."""
    try:
        answer_signals()
        from annealz.cli.main import main as run

        run()
    except KeyboardInterrupt:  # before the command began, or after its end
        print("annealz: interrupted.", file=sys.stderr)
        sys.exit(status_at_end(130))


if __name__ == "__main__":
    main()
