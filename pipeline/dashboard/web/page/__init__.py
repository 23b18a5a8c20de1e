"""The pages: Streamlit runs each file as a script."""
