"""Files that annealz writes itself: atomic writes, archives with checksums, locks."""
