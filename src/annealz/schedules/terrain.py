"""Terrain: what a pilot learned along the path.

    mean(beta) = E_beta[U],    g(beta) = Var_beta[U],    U = d/dbeta log p*_beta

A schedule beta(t) run in K steps under perfect transitions has K Var[log w] -> J as K grows,

    J = ∫ (dbeta/dt)^2 g(beta) dt,     J_linear = ∫ g dbeta,     J_min = (∫ √g dbeta)^2

Real chains remember. With the autocorrelation time tau(beta) of U, slow driving has

    K Var[log w] -> ∫ (dbeta/dt)^2 g tau dt,     least (∫ √(g tau) dbeta)^2

(the friction of Sivak and Crooks 2012), and log Z - E[log w] -> Var[log w] / 2.

The estimates of g are noisy: with n effective chains, Var[log g] is about 2 / n. `smoothed` convolves
log g with a Gaussian; the raw values are kept.
"""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from annealz.diagnostics.sheet import Sheet, Shown, View, data_frame
from annealz.io.archive import load_archive, real_numbers, save_archive
from annealz.io.reading import told
from annealz.io.records import Record, finite, flag, list_of, numbers, table, whole

if TYPE_CHECKING:
    from annealz.engine.run import Run

TERRAIN = Record(
    "the terrain",
    {},
    {
        **dict.fromkeys(("betas", "mean", "variance", "ess", "tau"), numbers),
        "tau_is_bound": list_of(flag),
        "sweeps": whole,
        "seconds": finite,
        "provenance": table,
    },
)

_FLOOR = 1e-16  # of the largest g: what a zero counts as
_LEAST_SPACING = 1e-12  # between betas: nearer ones would overflow slopes and splines
_WIDTHS = np.concatenate([[0.0], np.geomspace(1e-3, 0.1, 25)])


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Terrain(Shown):
    """Mean and variance of the slope at some betas, and what they cost.

    Parameters
    ----------
    betas : (points,), increasing in [0, 1], no two nearer than 1e-12
    mean, variance, ess : (points,)
    sweeps : kernel applications spent
    tau : (points,), autocorrelation time of the slope in sweeps; where a pilot did not measure it, None
    tau_is_bound : (points,), where tau is only a lower bound; nowhere by default

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> betas = np.linspace(0, 1, 101)
    >>> terrain = annealz.Terrain(betas, betas, (1 + 3 * betas) ** 2, np.full(101, 1e6))
    >>> round(terrain.linear_cost, 2), round(terrain.least_cost, 2)  # 7 and 2.5 squared
    (7.0, 6.25)
    """

    betas: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    ess: np.ndarray
    sweeps: int = 0
    seconds: float = 0.0
    provenance: dict[str, Any] = dataclasses.field(default_factory=dict)
    tau: np.ndarray | None = None
    tau_is_bound: np.ndarray | None = None

    def __post_init__(self):
        if self.tau is not None and self.tau_is_bound is None:
            object.__setattr__(self, "tau_is_bound", np.zeros(np.shape(self.tau), bool))
        for name, given in self._columns.items():
            kind = bool if name == "tau_is_bound" else np.float64
            array = np.array(given, kind)
            if array.ndim != 1 or array.size == 0 or array.shape != np.shape(self.betas):
                raise ValueError(
                    f"terrain {name} must be a vector as long as betas, got shape {array.shape} "
                    f"beside {np.shape(self.betas)}."
                )
            if not np.isfinite(array).all():
                raise ValueError(f"terrain {name} must be finite, got NaN or infinite values.")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        is_inside = self.betas[0] >= 0 and self.betas[-1] <= 1
        if not is_inside or not (np.diff(self.betas) >= _LEAST_SPACING).all():
            raise ValueError("terrain betas must increase by 1e-12 or more within [0, 1].")
        if (self.variance < 0).any():
            raise ValueError("terrain variance must not be negative.")
        if self.tau is not None and (self.tau <= 0).any():
            raise ValueError("terrain tau must be positive.")

    def smoothed(self, width: float | None = None) -> "Terrain":
        """Return the terrain with log g convolved by a Gaussian of this width in beta.

        By default the width that minimises Mallows' C_p, mean (log g - smooth)^2 + 2 s^2 trace / n, with
        the noise s^2 = mean of 2 / ESS.
        """
        if width is not None and not 0 <= width < 1:
            raise ValueError(f"width must lie in [0, 1), got {width}.")
        grid = np.linspace(self.betas[0], self.betas[-1], max(self.betas.size, 2))
        log_g = np.interp(grid, self.betas, self._log_variance())
        step = grid[1] - grid[0]
        if width is None:
            width = self._best_width(log_g, step)
        smooth = _convolve(log_g, width / step if step > 0 else 0.0)[0]
        variance = np.exp(np.interp(self.betas, grid, smooth))
        note = {**self.provenance, "smoothing_width": float(width)}
        return dataclasses.replace(self, variance=variance, provenance=note)

    def on_grid(
        self, num_points: int = 2001, *, with_memory: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (betas from 0 to 1, g): log g interpolated, and continued as a constant to both ends.

        With memory, g tau.
        """
        grid = np.union1d(np.linspace(0, 1, num_points), self.betas)
        if self.provenance.get("is_dense"):  # knots may lie far nearer to each other than the grid
            grid = np.union1d(grid, np.linspace(self.betas[:-1], self.betas[1:], 17))
        grid = grid[np.diff(grid, prepend=-1) > _LEAST_SPACING / 10]
        grid[-1] = 1.0  # or a neighbour stands in its place
        logs = self._log_variance()
        if with_memory:
            if self.tau is None:
                raise ValueError("this terrain has no tau: survey it with survey_mixing.")
            logs = logs + np.log(self.tau)
        return grid, np.exp(np.interp(grid, self.betas, logs))

    def sheet(self) -> Sheet:
        """Return what it shows."""
        rows = [
            ("least cost J", f"{self.least_cost:.4g} under perfect mixing"),
            ("cost of linear", f"{self.linear_cost:.4g}"),
            ("largest g(β)", f"{self.variance.max():.4g}"),
        ]
        if self.tau is not None:
            bound = ", at least" if np.any(self.tau_is_bound) else ""
            rows.append(("largest τ(β)", f"{self.tau.max():.3g} sweeps{bound}"))
        rows.append(("pilot", f"{self.sweeps:,} sweeps, {self.seconds:.1f} s"))
        grid, g = self.on_grid(201)
        even = np.sqrt(np.interp(np.linspace(0, 1, 201), grid, g))
        curves = [("√g(β)", even / max(even.max(), 1e-300))]
        return self.described(("terrain", f"{self.betas.size} betas"), rows, curves=curves)

    def to_pandas(self):
        """Return a pandas table, one row per beta."""
        columns = self._columns
        return data_frame({"beta": columns.pop("betas"), **columns})

    @property
    def linear_cost(self) -> float:
        """J of the linear schedule."""
        grid, g = self.on_grid()
        return float(np.trapezoid(g, grid))

    @property
    def least_cost(self) -> float:
        """J of the optimal schedule."""
        grid, g = self.on_grid()
        return float(np.trapezoid(np.sqrt(g), grid)) ** 2

    def cost(self, betas: np.ndarray) -> float:
        """Return J of a schedule: K sum_k (beta_k - beta_{k-1}) ∫ g over the step."""
        grid, g = self.on_grid()
        areas = np.concatenate([[0], np.cumsum((g[1:] + g[:-1]) / 2 * np.diff(grid))])
        steps = np.diff(betas)
        return float(steps.size * (steps * np.diff(np.interp(betas, grid, areas))).sum())

    @property
    def spent(self) -> dict[str, Any]:
        """What the pilot spent, as schedules note it."""
        return {"pilot_sweeps": self.sweeps, "pilot_seconds": self.seconds}

    def pilot_cost(self, kernel: Any) -> Any:
        """Return the cost of the pilot, which moved chains by this kernel."""
        return kernel.cost(self.sweeps, self.provenance.get("starts", 0), self.seconds)

    def save(self, path: str | Path) -> None:
        """Write as a checksummed npz archive."""
        save_archive(path, self._columns, {"kind": "terrain", **self._pilot})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a saved terrain."""
        arrays, meta = load_archive(path)
        if meta.pop("kind", None) != "terrain":
            raise ValueError(f"{path} holds no terrain.")
        try:
            columns = {name: real_numbers(arrays, name, "it", num_axes=1) for name in arrays}
            return cls(**columns, **TERRAIN.check(meta))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} holds a damaged terrain: {told(error)}.") from error

    def to_record(self) -> dict[str, Any]:
        """Return JSON values, which keep every bit."""
        return {name: array.tolist() for name, array in self._columns.items()} | self._pilot

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Return the terrain of such a record."""
        try:
            return cls(**TERRAIN.check(record))
        except TypeError as error:  # of names that it does not have, or lacks
            raise ValueError(f"its terrain is damaged: {told(error)}") from error

    plot = View("plots.schedule.plot_terrain")
    """Draw mean and variance of the slope, and its tau or the pilot's ESS; return the figure."""
    plot_mean = View("plots.schedule.plot_mean")
    """Draw the mean of the slope against beta; return the matplotlib axes."""
    plot_variance = View("plots.schedule.plot_variance")
    """Draw the variance g of the slope against beta, raw and smoothed; return the matplotlib axes."""
    plot_tau = View("plots.schedule.plot_tau")
    """Draw the autocorrelation time of the slope against beta; return the matplotlib axes."""

    @property
    def _columns(self) -> dict[str, Any]:
        measured = ("tau", "tau_is_bound") if self.tau is not None else ()
        return {
            name: getattr(self, name) for name in ("betas", "mean", "variance", "ess", *measured)
        }

    @property
    def _pilot(self) -> dict[str, Any]:
        return {"sweeps": self.sweeps, "seconds": self.seconds, "provenance": self.provenance}

    def _log_variance(self) -> np.ndarray:
        largest = self.variance.max()
        if largest == 0:
            return 0 * self.betas
        return np.log(np.maximum(self.variance, max(largest * _FLOOR, np.finfo(float).tiny)))

    def _best_width(self, log_g: np.ndarray, step: float) -> float:
        if step == 0 or log_g.size < 8:
            return 0.0
        noise = float(np.mean(2 / np.maximum(self.ess, 1)))
        risks = []
        for width in _WIDTHS:
            smooth, weight = _convolve(log_g, width / step)
            risks.append(np.mean((log_g - smooth) ** 2) + 2 * noise * weight)
        return float(_WIDTHS[int(np.argmin(risks))])


def terrain_of(run: "Run") -> Terrain:
    """Return what a forward run saw of the path, with on-the-fly weights, at its recorded steps."""
    trace = run.trace
    kept = np.diff(trace.betas, prepend=-1) >= _LEAST_SPACING  # some may be equal in float32
    return Terrain(
        betas=trace.betas[kept],
        mean=trace.means["slope"][kept],
        variance=trace.variances["slope"][kept],
        ess=trace.ess[kept],
        provenance={"pilot": "none"},
    )


def _convolve(values: np.ndarray, width: float) -> tuple[np.ndarray, float]:
    """Smooth by a Gaussian of this width in points; return also the mean weight of a point in its mean.

    At each point a line is fitted under the Gaussian's weights: inside that is the plain convolution,
    and near the ends, where half of the Gaussian is missing, slopes are kept.
    """
    reach = min(int(np.ceil(4 * width)), values.size - 1)
    if reach < 1 or width < 0.25:  # no neighbour weighs anything
        return values, 1.0
    offsets = np.arange(-reach, reach + 1)
    kernel = np.exp(-0.5 * (offsets / width) ** 2)
    kernel /= kernel.sum()

    def moment(array: np.ndarray, power: int) -> np.ndarray:
        return np.convolve(np.pad(array, reach), (kernel * offsets**power)[::-1], mode="valid")

    s0, s1, s2 = (moment(np.ones_like(values), power) for power in range(3))
    determinant = s0 * s2 - s1**2
    smooth = (s2 * moment(values, 0) - s1 * moment(values, 1)) / determinant
    return smooth, float(np.mean(kernel[reach] * s2 / determinant))
