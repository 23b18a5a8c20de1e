"""Rules about processes: who a member is, beyond the member id that a coordinator gives it."""
