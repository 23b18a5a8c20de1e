"""What people ask of a lake: to decode days again, to keep it small, to erase."""
