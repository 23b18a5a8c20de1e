"""What this machine must have, and how to get it: Java, the Delta jars, tools for the tests."""
