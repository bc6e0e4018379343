"""Views of results: text, HTML, pages, figures, trees, and live progress."""
