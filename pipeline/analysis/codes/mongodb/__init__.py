"""What each error code of MongoDB means."""
