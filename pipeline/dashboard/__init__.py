"""Looking at the lake: SQL views that answer everyday questions, and SQL without a JVM."""
