"""What streams of all protocols have in common: frames behind a length, found again after a loss, and their order."""
