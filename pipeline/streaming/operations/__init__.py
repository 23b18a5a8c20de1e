"""What people ask of a lake: to decode days anew, to keep it small, to erase."""
