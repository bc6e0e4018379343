"""Every record that is read from a file, with its fields."""

from annealz.reading.fields import (
    Field,
    Record,
    Table,
    file_name,
    finite,
    flag,
    line,
    list_of,
    number,
    numbers,
    one_of,
    optional,
    table,
    text,
    whole,
)

__all__ = [
    "CHECKPOINT",
    "EXCHANGE",
    "EXCHANGE_SETTINGS",
    "MODEL",
    "OUTCOME",
    "PROBLEM",
    "RUN",
    "SCHEDULE",
    "SETTINGS",
    "SOURCE",
    "STORED",
    "TERRAIN",
    "TRAINING",
]

MODEL = Record(
    "the model's record",
    (
        Field("name", line, False),
        Field("exact_log_z", finite, False),
        Field("digest", text, False),
        Field("stored", table, False),
    ),
)
STORED = Record(
    "what is stored",
    (
        Field("family", line),
        Field("plain", table),
        Field("lengths", Table(whole)),
        Field("parts", table),
    ),
)
RUN = Record(
    "the record of a run",
    (
        Field("log_z0", finite),
        Field("seed", whole),
        Field("purpose", text),
        Field("seconds", finite),
        Field("messages", list_of(text)),
        Field("is_reverse", flag, False),
        Field("island_size", optional(whole), False),
        Field("num_resamplings", whole, False),
    ),
)
EXCHANGE = Record("the record of a run of replica exchange", RUN.fields[:5])
CHECKPOINT = Record(
    "the record of a checkpoint",
    (Field("digest", text), Field("step", whole), Field("seconds", finite)),
)
TERRAIN = Record(
    "the terrain",
    (
        *(Field(name, numbers, False) for name in ("betas", "mean", "variance", "ess", "tau")),
        Field("tau_is_bound", list_of(flag), False),
        Field("sweeps", whole, False),
        Field("seconds", finite, False),
        Field("provenance", table, False),
    ),
)
SCHEDULE = Record(
    "the schedule",
    (
        Field("name", line),
        Field("digest", text),
        Field("provenance", table),
        Field("betas", numbers),
        Field("terrain", optional(TERRAIN), False),
    ),
)
PROBLEM = Record(
    "what is annealed",
    (
        Field("model", line),
        Field("model_digest", text),
        Field("source", optional(line), False),
        Field("base", optional(text)),
        Field("marginal", optional(text)),
        Field("given", table),
    ),
)
_COMMON = (
    *PROBLEM.fields,
    Field("asked", optional(table), False),
    Field("seed", whole),
    Field("target_std_err", optional(finite)),
    Field("checkpoint_seconds", finite),
    Field("exact_log_z", optional(number)),
    Field("pilot_sweeps", whole),
    Field("pilot_seconds", finite),
    Field("evaluations_a_sweep", optional(whole)),
    Field("base_evaluations", whole),
    Field("versions", table),
)
SETTINGS = Record(
    "the settings of a run",
    (
        *_COMMON,
        Field("num_chains", whole),
        Field("record_every", optional(whole)),
        Field("wanted_chains", whole, False),
        Field("max_seconds", optional(finite), False),
        Field("part_chains", optional(whole), False),
        Field("resample", optional(finite), False),
        Field("two_sided", flag, False),
        Field("draws", text, False),
        Field("draw_sweeps", whole, False),
        Field("second", optional(table), False),
        Field("along", optional(numbers), False),
        Field("base_reason", optional(text), False),
    ),
)
EXCHANGE_SETTINGS = Record(
    "the settings of a run of replica exchange",
    (
        *_COMMON,
        *(Field(name, whole) for name in ("num_rungs", "num_ensembles", "num_sweeps", "num_draws")),
    ),
)
OUTCOME = Record(
    "the result of a training",
    (
        *(Field(name, line) for name in ("file", "name", "digest")),
        *(Field(name, whole) for name in ("num_hidden", "num_visible", "num_updates")),
        Field("data", Record("data", (Field("name", line), Field("digest", text)))),
        Field("reconstruction_error", number),
        Field("pseudo_log_likelihood", number),
        Field("exact_log_z", optional(number)),
        Field("log_likelihood", optional(number)),
        Field("seconds", finite),
        Field("series", optional(line)),
        Field("messages", list_of(text)),
    ),
)
SOURCE = Record(
    "the record of data",
    (
        Field("name", line),
        Field("kind", one_of("mnist", "file")),
        Field("path", optional(text)),
        Field("digest", text, False),
    ),
)
_TRAINED = Record(
    "the settings of a training",
    (
        Field("num_hidden", whole),
        Field("algorithm", text, False),
        *(
            Field(name, whole, False)
            for name in ("gibbs_steps", "num_updates", "batch_size", "seed")
        ),
        Field("learning_rate", finite, False),
        Field("final_learning_rate", optional(finite), False),
        Field("weight_decay", finite, False),
    ),
)
TRAINING = Record(
    "the record of a training",
    (
        Field("settings", _TRAINED),
        Field("data", SOURCE),
        Field("file", file_name),
        Field("series", optional(whole)),
        Field("checkpoint_seconds", finite),
    ),
)
