"""Transitions that leave p_beta invariant."""
