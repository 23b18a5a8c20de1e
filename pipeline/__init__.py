"""Everything that touches the world: captures, the lake, Spark, the command line."""
