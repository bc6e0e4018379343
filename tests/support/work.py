"""Work whose log ratio is known."""


def gaussian_work(generator, num_forward: int, num_reverse: int, s: float, log_ratio: float = 0.0):
    return (
        generator.normal(log_ratio - s**2 / 2, s, num_forward),
        generator.normal(log_ratio + s**2 / 2, s, num_reverse),
    )
