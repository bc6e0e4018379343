"""Nested sampling: live points that rise with the likelihood, by BlackJAX's nested slice sampling."""
