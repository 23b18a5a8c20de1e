"""Settings, and the options by which commands take them."""
