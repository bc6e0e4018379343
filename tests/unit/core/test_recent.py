"""What was made of the same objects a moment ago is not made again."""

import numpy as np

from annealz.core.recent import Recent


def test_the_same_objects_and_names_give_the_same_value():
    recent, array, made = Recent(2), np.ones(2), []

    def get(*of):
        return recent.get(of, lambda: made.append(of) or len(made))

    name = "vis"
    assert get(array, "visible") == 1
    assert get(array, f"{name}ible") == 1  # an equal name that is another object
    assert get(array.copy(), "visible") == 2  # an equal array that is another object
    assert get(array, "hidden") == 3
    assert get(array) == 4
    assert get(array, "visible") == 5  # the last two are held, no more
    assert len(made) == 5
