"""What the dashboard asks the lake: one module a page, each query bounded in time and in rows; no word of drawing."""
