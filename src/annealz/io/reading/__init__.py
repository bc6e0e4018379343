"""Files of strangers, read with care: regular files, known sizes, checked records, nothing pickled."""
