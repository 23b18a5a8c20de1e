"""What Spark itself needs: a session, its workers, Python functions over groups."""
