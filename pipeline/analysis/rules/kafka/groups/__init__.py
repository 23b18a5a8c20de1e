"""Rules about groups: who commits, who comes and goes, who holds what up."""
