"""The application that spark-submit starts: Wirelake's Spark job, wherever it is installed."""

from pipeline.streaming.job import main

if __name__ == "__main__":
    raise SystemExit(main())
