"""Moments: the few dated lines by which a finding happened, each with the exchange it rests on."""
