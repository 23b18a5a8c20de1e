"""What do pairs of frames mean? Pure functions from Arrow tables to tables and findings: no Spark, files or clock."""
