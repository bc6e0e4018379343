"""An estimate by replica exchange: its run, its folder, its result."""
