"""What ends a run on a cluster: the scheduler is gone, or workers die as often as they are started."""

__all__ = ["LostCluster"]


class LostCluster(RuntimeError):
    """The cluster of a run is gone; what its folder holds can be resumed, with a cluster or without.

    Examples
    --------
    >>> import annealz
    >>> def estimate_or_resume(model, client):
    ...     try:
    ...         return annealz.estimate_log_z(model, out="run", client=client)
    ...     except annealz.LostCluster:
    ...         return annealz.resume("run")  # in this process
    """
