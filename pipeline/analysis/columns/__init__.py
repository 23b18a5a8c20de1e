"""Arrays of numbers in place of an object of each value, and the way from and to Arrow."""
