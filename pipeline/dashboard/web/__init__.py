"""The web page (Streamlit): ``wirelake dashboard``. What it asks is in :mod:`pipeline.dashboard.queries`."""
