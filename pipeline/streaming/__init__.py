"""The streaming job: landing zone → bronze → silver → gold → findings, on Spark and Delta Lake."""
