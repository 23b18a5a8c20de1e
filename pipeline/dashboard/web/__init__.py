"""The web page (Streamlit): ``wirelake dashboard``. What it asks stands in :mod:`pipeline.dashboard.queries`."""
