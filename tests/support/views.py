"""What tests of views share."""

from annealz.testing import random_rbm

__all__ = ["HOSTILE", "MODEL", "PLAIN"]

MODEL = random_rbm(4, 6, 0.5, 1)
PLAIN = {"base": "visible-bias", "second_opinion": False}  # one base, no search
HOSTILE = "<script>alert('$x^$')</script>&\"<img src=http://x.invalid/y onerror=alert(1)>"
