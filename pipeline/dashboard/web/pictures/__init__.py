"""Pictures as Altair charts, and their colours; they need no Streamlit."""
