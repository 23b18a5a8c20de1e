"""The rules that find trouble, one module each: meaning, evidence, advice. The runner writes ``gold.findings``."""
