"""The page's own scripts, which run in the browser."""
