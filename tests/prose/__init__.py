"""The documentation linter: which words a text avoids, and where the texts are."""
