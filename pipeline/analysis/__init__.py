"""The meaning of pairs of frames: pure functions from Arrow tables to tables and findings; no Spark, files or clock."""
